#include "perfmap/discover.h"

#include <string.h>

#define INTERPRETERS_MAX 64
#define THREADS_MAX 256
#define THREAD_BYTES 512     /* of a PyThreadState that are searched for its thread */
#define TSTATE_NEXT 8	     /* PyThreadState: prev and next come first, in every version */
#define VARIABLES_BYTES 4096 /* of thread-local variables */
#define SLOTS_BYTES_MAX 4096 /* of one block of slots */

static uint64_t read_word(const struct memory *memory, uint64_t addr)
{
	uint64_t word;

	return memory_read(memory, addr, &word, sizeof(word)) ? 0 : word;
}

int py_each_thread(const struct py_version *version, const struct memory *memory, uint64_t runtime,
		   int (*each)(uint64_t tstate, void *ctx), void *ctx)
{
	uint64_t interpreter;
	int ret = 0;

	if (!version->interpreters)
		return 0;
	interpreter = read_word(memory, runtime + version->interpreters);
	for (int i = 0; i < INTERPRETERS_MAX && interpreter && !ret; i++) {
		uint64_t tstate = read_word(memory, interpreter + version->interp_threads);

		for (int t = 0; t < THREADS_MAX && tstate && !ret; t++) {
			ret = each(tstate, ctx);
			tstate = read_word(memory, tstate + TSTATE_NEXT);
		}
		interpreter = read_word(memory, interpreter + version->interp_next);
	}
	return ret;
}

bool py_variable_of_code(const unsigned char *code, size_t len, int32_t *offset)
{
	static const struct {
		unsigned char bytes[5];
		size_t len;
		bool wanted;
	} steps[] = {
		{{0xf3, 0x0f, 0x1e, 0xfa}, 4, false},	   /* endbr64 */
		{{0x55, 0x48, 0x89, 0xe5}, 4, false},	   /* push %rbp; mov %rsp,%rbp */
		{{0x64, 0x48, 0x8b, 0x04, 0x25}, 5, true}, /* mov %fs:offset,%rax */
	};
	size_t at = 0;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (at + steps[i].len <= len && !memcmp(code + at, steps[i].bytes, steps[i].len))
			at += steps[i].len;
		else if (steps[i].wanted)
			return false;
	}
	if (at + sizeof(*offset) > len)
		return false;
	memcpy(offset, code + at, sizeof(*offset));
	return *offset != 0;
}

struct search {
	const struct memory *memory;
	struct py_process *process; /* whose key or variables are found */
	uint64_t last, pointer;	    /* last thread state that was seen, its thread pointer */
};

/* Does a slot of this block hold the thread state? */
static bool look_at_block(struct search *search, uint64_t block, uint32_t first, uint64_t tstate)
{
	unsigned char slots[SLOTS_BYTES_MAX];
	const struct py_tsd *tsd = &search->process->tsd;
	size_t size = (size_t)tsd->block_keys * tsd->entry_size;

	if (!block || size > sizeof(slots) || memory_read(search->memory, block, slots, size))
		return false;
	for (uint32_t i = 0; i < tsd->block_keys; i++) {
		uint64_t value;

		memcpy(&value, slots + (size_t)i * tsd->entry_size + tsd->data, sizeof(value));
		if (value == tstate) {
			search->process->key = first + i;
			return true;
		}
	}
	return false;
}

/* Is this the pthread_t of the thread that the thread state belongs to? */
static bool look_at_thread(struct search *search, uint64_t thread, uint64_t tstate)
{
	const struct py_tsd *tsd = &search->process->tsd;
	uint64_t pointer = thread - (uint64_t)(int64_t)tsd->self;
	uint64_t blocks = pointer + (uint64_t)(int64_t)tsd->blocks;
	uint64_t first = read_word(search->memory, blocks);

	/* A thread has its first block within it, before the pointers to blocks. */
	if (first != blocks - (uint64_t)tsd->block_keys * tsd->entry_size)
		return false;
	search->last = tstate;
	search->pointer = pointer;
	for (uint32_t i = 0; i < tsd->block_count; i++) {
		uint64_t block = i ? read_word(search->memory, blocks + 8 * (uint64_t)i) : first;

		if (look_at_block(search, block, i * tsd->block_keys, tstate))
			return true;
	}
	return false;
}

static int look_for_key(uint64_t tstate, void *ctx)
{
	struct search *search = ctx;
	uint64_t words[THREAD_BYTES / 8];

	if (memory_read(search->memory, tstate, words, sizeof(words)))
		return 0;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i] && words[i] % 8 == 0 && look_at_thread(search, words[i], tstate))
			return 1;
	return 0;
}

/*
 * The oldest thread, which is listed last, has no stack beside its variables. Two of them hold the
 * thread state while it runs (_Py_tss_tstate is the other), so up to two are taken: the walker
 * believes the first that holds something.
 */
static bool look_for_variables(struct search *search)
{
	uint64_t words[VARIABLES_BYTES / 8], base;
	struct py_process *process = search->process;
	size_t found = 0;

	/* Below the thread pointer where the thread begins at it (x86), else above. */
	base = process->tsd.self ? search->pointer : search->pointer - sizeof(words);
	for (size_t size = sizeof(words); size >= 256 && search->last; size /= 2) {
		if (!process->tsd.self)
			base = search->pointer - size;
		if (memory_read(search->memory, base, words, size))
			continue;
		for (size_t i = 0; i < size / 8 && found < 2; i++)
			if (words[i] == search->last)
				process->variable[found++] = (int32_t)(base + 8 * i -
								       search->pointer);
		break;
	}
	return found != 0;
}

bool py_find_key(const struct py_version *version, const struct memory *memory,
		 struct py_process *process)
{
	struct search search = {.memory = memory, .process = process};
	const struct py_tsd *tsd = &process->tsd;
	uint64_t tstate;

	if (!tsd->block_keys || !tsd->entry_size || tsd->data + sizeof(uint64_t) > tsd->entry_size)
		return false;
	if (!version->interpreters) { /* the one that holds the GIL */
		tstate = process->current ? read_word(memory, process->current) : 0;
		return tstate && look_for_key(tstate, &search);
	}
	return py_each_thread(version, memory, process->runtime, look_for_key, &search) ||
	       look_for_variables(&search);
}
