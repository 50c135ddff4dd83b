#include "perfmap/walk.h"

#include "walk_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/*
 * The walker over saved images of real interpreters (tests/data/walk-3.N.img, written by
 * test_walk_live.c), and over what no interpreter would ever have: it must end, and say so.
 */

static const char *const images[] = {
	"tests/data/walk-3.6.img",  "tests/data/walk-3.7.img",	"tests/data/walk-3.8.img",
	"tests/data/walk-3.9.img",  "tests/data/walk-3.10.img", "tests/data/walk-3.11.img",
	"tests/data/walk-3.12.img", "tests/data/walk-3.13.img", "tests/data/walk-3.14.img",
};
#define IMAGE_3_11 5
#define IMAGE_3_13 7
#define IMAGE_3_14 8
#define IMAGES (sizeof(images) / sizeof(images[0]))

static struct py_raw_frame frames[PY_FRAMES_MAX];

static void test_images(void **state)
{
	for (size_t n = 0; n < IMAGES; n++) {
		struct walk_image image;
		struct memory memory;
		unsigned int count;

		assert_true(walk_image_load(&image, images[n]));
		memory = memory_of_image(image.memory);
		assert_int_equal(py_walk(&image.process, &memory, image.thread, frames,
					 PY_FRAMES_MAX, &count),
				 PY_WALK_OK);
		assert_int_equal(count, image.frames);
		assert_true(count > 10);
		for (unsigned int i = 0; i < count; i++) {
			uint64_t pointer;
			char name[80];

			assert_true(frames[i].code == image.frame[i].code);
			assert_int_equal(frames[i].instr & PY_INSTR_MASK, image.frame[i].offset);
			assert_int_equal(!!(frames[i].instr & PY_FRAME_ENTRY),
					 image.frame[i].entry);
			assert_int_equal(frames[i].instr & PY_FRAME_NO_INSTR, 0);
			assert_int_equal(
				memory_read(&memory,
					    frames[i].code + walk_image_name(&image.process.layout),
					    &pointer, sizeof(pointer)),
				0);
			assert_true(walk_image_string(&memory, &image.process.layout, pointer, name,
						      sizeof(name)));
			assert_string_equal(name, image.frame[i].qualname);
		}
		/* Two code objects, two fingerprints; one code object, one. */
		for (unsigned int i = 0; i < count; i++)
			for (unsigned int j = 0; j < i; j++)
				assert_int_equal(frames[i].code == frames[j].code,
						 frames[i].fingerprint == frames[j].fingerprint);
		walk_image_free(&image);
	}
}

/* Fewer frames than there are: those nearest to the leaf, and the cut is said. */
static void test_room(void **state)
{
	for (size_t n = 0; n < IMAGES; n++) {
		struct walk_image image;
		struct memory memory;
		unsigned int count;

		assert_true(walk_image_load(&image, images[n]));
		memory = memory_of_image(image.memory);
		for (unsigned int max = 0; max <= image.frames; max++) {
			int status = py_walk(&image.process, &memory, image.thread, frames, max,
					     &count);

			assert_int_equal(status,
					 max < image.frames ? PY_WALK_TRUNCATED : PY_WALK_OK);
			assert_int_equal(count, max);
			for (unsigned int i = 0; i < count; i++)
				assert_true(frames[i].code == image.frame[i].code);
		}
		walk_image_free(&image);
	}
}

/* An image that lies: reads go to the image, but the word at `addr` is `word`, and reads from the
 * `fail_at`th on are refused. */
struct liar {
	struct memory inner;
	uint64_t addr, word;
	unsigned long reads, fail_at;
};

static int liar_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct liar *liar = ctx;

	if (++liar->reads >= liar->fail_at || memory_read(&liar->inner, addr, buf, len))
		return -1;
	if (liar->addr >= addr && liar->addr + 8 <= addr + len)
		memcpy((char *)buf + (liar->addr - addr), &liar->word, sizeof(liar->word));
	return 0;
}

/* Whatever read fails, what was found before is what an undisturbed walk found. */
static void test_faults(void **state)
{
	for (size_t n = 0; n < IMAGES; n++) {
		struct walk_image image;
		struct liar liar = {0};
		struct memory memory = {.read = liar_read, .ctx = &liar};
		unsigned int count = 0, seen = 0;

		assert_true(walk_image_load(&image, images[n]));
		liar.inner = memory_of_image(image.memory);
		for (liar.fail_at = 1;; liar.fail_at++) {
			int status;

			liar.reads = 0;
			status = py_walk(&image.process, &memory, image.thread, frames,
					 PY_FRAMES_MAX, &count);
			if (status == PY_WALK_OK)
				break;
			assert_int_equal(status, PY_WALK_FAULT);
			assert_true(count >= seen && count <= image.frames);
			seen = count;
			for (unsigned int i = 0; i < count; i++)
				assert_true(frames[i].code == image.frame[i].code);
		}
		assert_int_equal(count, image.frames);
		walk_image_free(&image);
	}
}

/* Addresses of the frames, shims included, by following the chain from the leaf. */
struct chain {
	uint64_t leaf_at; /* where the leaf's address is */
	uint64_t frame[256];
	size_t count;
};

static uint64_t word_at(const struct memory *memory, uint64_t addr)
{
	uint64_t word;

	assert_int_equal(memory_read(memory, addr, &word, sizeof(word)), 0);
	return word;
}

static void find_frames(struct chain *chain, const struct walk_image *image)
{
	const struct py_layout *layout = &image->process.layout;
	struct memory memory = memory_of_image(image->memory);
	unsigned int count;
	__u64 tstate;

	memset(chain, 0, sizeof(*chain));
	assert_int_equal(py_thread_state(&image->process, &memory, image->thread, &tstate),
			 PY_WALK_OK);
	chain->leaf_at = tstate + layout->tstate_frame;
	if (layout->has_cframe)
		chain->leaf_at = word_at(&memory, chain->leaf_at) + layout->cframe_frame;
	for (uint64_t at = word_at(&memory, chain->leaf_at); at; chain->count++) {
		assert_true(chain->count < 256);
		chain->frame[chain->count] = at;
		at = word_at(&memory, at + layout->frame_previous);
	}
	assert_int_equal(
		py_walk(&image->process, &memory, image->thread, frames, PY_FRAMES_MAX, &count),
		PY_WALK_OK);
	assert_true(chain->count >= count);
}

static void test_hostile_frames(void **state)
{
	static const uint64_t wild[] = {
		0x10,	0xdeadbeef, 0x7fffffffffffull, 0xffffffffffffff00u, 0xffffffffffffffffu,
		0x1000,
	};

	for (size_t n = 0; n < IMAGES; n++) {
		struct walk_image image;
		struct chain chain;
		struct liar liar = {.fail_at = 1000000};
		struct memory memory = {.read = liar_read, .ctx = &liar};
		const struct py_layout *layout;
		unsigned int count;

		assert_true(walk_image_load(&image, images[n]));
		layout = &image.process.layout;
		liar.inner = memory_of_image(image.memory);
		find_frames(&chain, &image);

		for (size_t i = 0; i < chain.count; i++) {
			/* a chain that bites its tail, at every frame */
			liar.addr = chain.frame[i] + layout->frame_previous;
			liar.word = chain.frame[i];
			liar.reads = 0;
			assert_int_equal(py_walk(&image.process, &memory, image.thread, frames,
						 PY_FRAMES_MAX, &count),
					 PY_WALK_TRUNCATED);
			assert_true(count <= PY_FRAMES_MAX);
			assert_true(liar.reads < 5000);
			for (size_t w = 0; w < sizeof(wild) / sizeof(wild[0]); w++) {
				int status;

				/* a chain that leads nowhere */
				liar.addr = chain.frame[i] + layout->frame_previous;
				liar.word = wild[w];
				status = py_walk(&image.process, &memory, image.thread, frames,
						 PY_FRAMES_MAX, &count);
				assert_true(status == PY_WALK_FAULT || status == PY_WALK_BAD);
				/* code that is none */
				liar.addr = chain.frame[i] + layout->frame_code;
				status = py_walk(&image.process, &memory, image.thread, frames,
						 PY_FRAMES_MAX, &count);
				assert_true(status == PY_WALK_FAULT || status == PY_WALK_BAD ||
					    status == PY_WALK_OK /* a shim's is not looked at */);
				/* an instruction that is not in its code */
				liar.addr = chain.frame[i] + layout->frame_instr;
				assert_int_equal(py_walk(&image.process, &memory, image.thread,
							 frames, PY_FRAMES_MAX, &count),
						 PY_WALK_OK);
				assert_int_equal(count, image.frames);
			}
		}
		/* the leaf: its line is unknown, its function is not */
		liar.addr = chain.frame[0] + layout->frame_instr;
		liar.word = 0xdeadbeef;
		py_walk(&image.process, &memory, image.thread, frames, PY_FRAMES_MAX, &count);
		assert_true(frames[0].instr & PY_FRAME_NO_INSTR);
		assert_true(frames[0].code == image.frame[0].code);
		walk_image_free(&image);
	}
}

/* One unit before the code: pushed, nothing started; its line is that of the first instruction. */
static void test_frame_that_has_not_started(void **state)
{
	struct walk_image image;
	struct chain chain;
	struct liar liar = {.fail_at = 1000000};
	struct memory memory = {.read = liar_read, .ctx = &liar};
	unsigned int count;

	assert_true(walk_image_load(&image, images[IMAGE_3_11]));
	liar.inner = memory_of_image(image.memory);
	find_frames(&chain, &image);
	liar.addr = chain.frame[0] + image.process.layout.frame_instr;
	liar.word = frames[0].code + image.process.layout.code_bytes - 2;
	py_walk(&image.process, &memory, image.thread, frames, PY_FRAMES_MAX, &count);
	assert_int_equal(frames[0].instr, 0);
	walk_image_free(&image);
}

/* Memory with words of it replaced, and some where there is none. */
struct patched {
	struct memory inner;
	struct {
		uint64_t addr, word;
	} words[4];
};

static int patched_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct patched *patched = ctx;
	bool there = memory_read(&patched->inner, addr, buf, len) == 0;

	for (size_t i = 0; i < 4; i++) {
		if (patched->words[i].addr < addr || patched->words[i].addr + 8 > addr + len)
			continue;
		memcpy((char *)buf + (patched->words[i].addr - addr), &patched->words[i].word, 8);
		there |= len == 8;
	}
	return there ? 0 : -1;
}

/* 3.11, 3.12: a cframe that its eval loop has not filled yet tells frames that are not linked. */
static void test_torn_cframe(void **state)
{
	static const int with_cframe[] = {IMAGE_3_11, IMAGE_3_11 + 1};

	for (size_t n = 0; n < 2; n++) {
		struct walk_image image;
		struct chain chain;
		struct patched patched = {0};
		struct memory memory = {.read = patched_read, .ctx = &patched};
		const struct py_layout *layout = &image.process.layout;
		const uint64_t before = 0x10000;
		uint64_t end = 0;
		unsigned int count;

		assert_true(walk_image_load(&image, images[with_cframe[n]]));
		assert_true(layout->has_cframe);
		patched.inner = memory_of_image(image.memory);
		find_frames(&chain, &image);
		/* what the first frame of the innermost loop, or its shim, was called from */
		for (size_t i = 0; i < chain.count && !end; i++) {
			uint64_t field = layout->owner_shim ? layout->frame_owner
							    : layout->frame_is_entry;
			uint8_t value;

			assert_int_equal(memory_read(&patched.inner, chain.frame[i] + field, &value,
						     sizeof(value)),
					 0);
			if (layout->owner_shim ? value >= layout->owner_shim : value)
				end = word_at(&patched.inner,
					      chain.frame[i] + layout->frame_previous);
		}
		assert_true(end);
		patched.words[0].addr = chain.leaf_at + 8;
		patched.words[0].word = before;
		patched.words[1].addr = before + layout->cframe_frame;
		patched.words[1].word = end;
		assert_int_equal(py_walk(&image.process, &memory, image.thread, frames,
					 PY_FRAMES_MAX, &count),
				 PY_WALK_OK);
		assert_int_equal(count, image.frames);
		/* a generator's frame that is unlinked already, without the shim behind it */
		if (layout->owner_shim) {
			patched.words[2].addr = chain.frame[0] + layout->frame_previous;
			assert_int_equal(py_walk(&image.process, &memory, image.thread, frames,
						 PY_FRAMES_MAX, &count),
					 PY_WALK_BAD);
			assert_int_equal(count, 1);
			assert_true(frames[0].code == image.frame[0].code);
			patched.words[2].addr = 0;
		}
		/* a frame that is another's, and none */
		patched.words[1].word = chain.frame[0];
		assert_int_equal(py_walk(&image.process, &memory, image.thread, frames,
					 PY_FRAMES_MAX, &count),
				 PY_WALK_BAD);
		assert_int_equal(count, 0);
		patched.words[1].word = 0;
		assert_int_equal(py_walk(&image.process, &memory, image.thread, frames,
					 PY_FRAMES_MAX, &count),
				 PY_WALK_BAD);
		assert_int_equal(count, 0);
		walk_image_free(&image);
	}
}

/* A free-threaded interpreter gives each thread its copy of the bytecode: what the frame's index
 * says is what the instruction lies in. Made of an image of the other kind. */
static void test_copies_of_bytecode(void **state)
{
	struct walk_image image;
	struct chain chain;
	struct patched patched = {0};
	struct memory memory = {.read = patched_read, .ctx = &patched};
	const uint64_t array = 0x10000, copy = 0x20000;
	unsigned int count;

	assert_true(walk_image_load(&image, images[IMAGE_3_14]));
	patched.inner = memory_of_image(image.memory);
	find_frames(&chain, &image);
	/* In places of fields that are not looked at: f_locals, co_exceptiontable. */
	image.process.layout.frame_tlbc = 40;
	image.process.layout.code_tlbc = 40;
	patched.words[0].addr = chain.frame[0] + image.process.layout.frame_instr;
	patched.words[0].word = copy + 6;
	patched.words[1].addr = chain.frame[0] + image.process.layout.frame_tlbc;
	patched.words[1].word = 3;
	patched.words[2].addr = image.frame[0].code + image.process.layout.code_tlbc;
	patched.words[2].word = array;
	patched.words[3].addr = array + 8 + 3 * 8;
	patched.words[3].word = copy;
	py_walk(&image.process, &memory, image.thread, frames, PY_FRAMES_MAX, &count);
	assert_int_equal(count, image.frames);
	assert_int_equal(frames[0].instr & ~PY_FRAME_ENTRY, 6);
	/* copy 0 is that in the code object */
	patched.words[1].word = 0;
	patched.words[0].word = image.frame[0].code + image.process.layout.code_bytes + 4;
	py_walk(&image.process, &memory, image.thread, frames, PY_FRAMES_MAX, &count);
	assert_int_equal(frames[0].instr & ~PY_FRAME_ENTRY, 4);
	/* an array that is not there: the function is known, its line is not */
	patched.words[1].word = 1000;
	py_walk(&image.process, &memory, image.thread, frames, PY_FRAMES_MAX, &count);
	assert_int_equal(count, image.frames);
	assert_true(frames[0].instr & PY_FRAME_NO_INSTR);
	walk_image_free(&image);
}

/* Threads that are not Python's, and keys that cannot be. */
static void test_thread_state(void **state)
{
	struct walk_image image;
	struct liar liar = {.fail_at = 1000000};
	struct memory memory = {.read = liar_read, .ctx = &liar};
	struct py_process broken;
	unsigned int count;

	assert_true(walk_image_load(&image, images[IMAGE_3_13]));
	liar.inner = memory_of_image(image.memory);
	liar.addr = image.process.tss_key - 4;
	liar.word = 0; /* the key is not made yet */
	assert_int_equal(
		py_walk(&image.process, &memory, image.thread, frames, PY_FRAMES_MAX, &count),
		PY_WALK_NO_THREAD);
	assert_int_equal(count, 0);
	liar.word = 0xffffffff00000001ull; /* a key beyond all blocks */
	assert_int_equal(
		py_walk(&image.process, &memory, image.thread, frames, PY_FRAMES_MAX, &count),
		PY_WALK_BAD);
	liar.word = 0x0000003f00000001ull; /* in a block that the thread does not have */
	assert_int_not_equal(
		py_walk(&image.process, &memory, image.thread, frames, PY_FRAMES_MAX, &count),
		PY_WALK_OK);
	liar.addr = 0;
	broken = image.process;
	broken.tsd.block_keys = 0;
	assert_int_equal(py_walk(&broken, &memory, image.thread, frames, PY_FRAMES_MAX, &count),
			 PY_WALK_BAD);
	assert_int_equal(py_walk(&image.process, &memory, 0, frames, PY_FRAMES_MAX, &count),
			 PY_WALK_FAULT);
	walk_image_free(&image);
}

/* Debug offsets come from a file that may be anything. */
static void test_layouts_are_checked(void **state)
{
	unsigned char bytes[PY_DEBUG_OFFSETS_BYTES], good[PY_DEBUG_OFFSETS_BYTES];
	struct py_version version = {.major = 3, .minor = 13};
	struct py_layout layout;
	struct walk_image image;
	struct memory memory;
	struct err err = {0};

	assert_true(walk_image_load(&image, images[IMAGE_3_13]));
	memory = memory_of_image(image.memory);
	assert_int_equal(memory_read(&memory, image.process.runtime, good, sizeof(good)), 0);
	assert_int_equal(py_layout_find(&version, good, sizeof(good), &layout, &err), 0);
	assert_int_equal(layout.tstate_frame, 72);
	assert_int_equal(layout.tstate_thread_id, 152);
	assert_int_equal(layout.code_bytes, 200);
	assert_int_equal(py_layout_find(&version, good, 300, &layout, &err), ERR_CORRUPT);
	assert_int_equal(py_layout_find(&version, good, 0, &layout, &err), ERR_CORRUPT);
	/* any word may be anything: refused, or a layout that is within bounds */
	for (size_t at = 0; at < 600; at += 8) {
		static const uint64_t words[] = {0, 1, 7, 4096, 65535, 65536, UINT64_MAX};

		for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
			memcpy(bytes, good, sizeof(bytes));
			memcpy(bytes + at, &words[w], sizeof(words[w]));
			version = (struct py_version){.major = 3, .minor = 13};
			if (py_layout_find(&version, bytes, sizeof(bytes), &layout, &err) == 0)
				assert_int_equal(py_layout_check(&layout, &err), 0);
		}
	}
	/* a header twice as wide moves what lies behind it: bytes' and strings' groups */
	static const uint64_t wide[] = {56, 32, 48, 80, 48, 32, 56};

	memcpy(bytes, good, sizeof(bytes));
	memcpy(bytes + 16, &(uint64_t){1}, 8);
	memcpy(bytes + 512, wide, sizeof(wide));
	version = (struct py_version){.major = 3, .minor = 13};
	assert_int_equal(py_layout_find(&version, bytes, sizeof(bytes), &layout, &err), 0);
	assert_true(version.free_threaded && layout.free_threaded);
	assert_int_equal(layout.code_units, 32);
	assert_int_equal(layout.code_identity[1], 5);
	/* A version that is not out yet describes itself, but for the key; or it is not known. */
	version = (struct py_version){.major = 3, .minor = 99};
	assert_int_equal(py_layout_find(&version, good, sizeof(good), &layout, &err), 0);
	assert_int_equal(layout.tstate_frame, 72);
	assert_int_equal(layout.minor, 99);
	assert_int_equal(version.tss_key, 0);
	assert_int_equal(version.interpreters, 632);
	assert_int_equal(version.interp_threads, 7344);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(py_layout_find(&version, bytes, sizeof(bytes), &layout, &err),
			 ERR_CORRUPT);
	version = (struct py_version){.major = 2, .minor = 13};
	assert_int_equal(py_layout_find(&version, good, sizeof(good), &layout, &err),
			 ERR_UNSUPPORTED);
	walk_image_free(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_images),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_hostile_frames),
		cmocka_unit_test(test_frame_that_has_not_started),
		cmocka_unit_test(test_torn_cframe),
		cmocka_unit_test(test_copies_of_bytecode),
		cmocka_unit_test(test_thread_state),
		cmocka_unit_test(test_layouts_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
