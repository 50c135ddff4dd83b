#include "output/pack.h"
#include "output/page.h"
#include "output/slices.h"
#include "profile/match.h"
#include "profile/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

/* What the page of `report --html` is bounded by. */

static void add(struct slices *slices, uint64_t time, uint32_t stack, uint64_t period)
{
	const struct slice_row row = {.stack = stack, .samples = 1, .period = period};

	assert_int_equal(slices_add(slices, time, &row, NULL), 0);
}

static void sum_rows(struct slices *slices, size_t *count, uint64_t *samples, uint64_t *period)
{
	const struct slice_row *rows = slices_sorted(slices, count);

	*samples = *period = 0;
	for (size_t i = 0; i < *count; i++) {
		*samples += rows[i].samples;
		*period += rows[i].period;
		assert_true(rows[i].slice < slices_count(slices));
		if (i)
			assert_true(rows[i - 1].slice < rows[i].slice ||
				    rows[i - 1].stack < rows[i].stack);
	}
}

static void test_slices_join_where_rows_are_many(void **state)
{
	struct slices *slices = slices_new(1000, 1000 + 1024 * 50, 100);
	uint64_t samples, period;
	size_t count;

	assert_non_null(slices);
	/* Two stacks all the time: 64 slices have 128 rows, 32 have 64. */
	for (uint64_t i = 0; i < 1024 * 50; i += 10)
		add(slices, 1000 + i, i % 20 ? 7 : 8, 3);
	sum_rows(slices, &count, &samples, &period);
	assert_int_equal(slices_count(slices), 32);
	assert_int_equal(count, 64);
	assert_int_equal(samples, 5120);
	assert_int_equal(period, 15360);
	slices_free(slices);
}

static void test_slices_take_any_time(void **state)
{
	struct slices *slices = slices_new(1000, 900, 10);
	uint64_t samples, period;
	size_t count;

	add(slices, 0, 1, UINT64_MAX / 4);
	add(slices, UINT64_MAX, 1, 1);
	add(slices, 1000, UINT32_MAX, 1);
	sum_rows(slices, &count, &samples, &period);
	assert_int_equal(samples, 3);
	slices_free(slices);
	slices_free(NULL);
}

static uint32_t function_of(struct profile *p, enum frame_kind kind, const char *name)
{
	struct function_item item;

	memset(&item, 0, sizeof(item));
	item.function.kind = kind;
	item.function.name = item.function.qualname = intern_str(&p->strings, name);
	item.function.file = intern_str(&p->strings, "/src/a.py");
	item.vaddr = kind == FRAME_PYTHON ? 0 : 0x1000;
	return profile_add_function(p, &item, 0);
}

static uint32_t frame_of(struct profile *p, uint32_t function, uint32_t line)
{
	uint32_t frame = profile_add_frame(p, ORIGIN_NATIVE, function, line);

	profile_frame_item(p, frame)->frame = (struct profile_frame){.function = function,
								     .line = line};
	return frame;
}

#define RARE 100

/* main, then one of many callers, then work in Python, which calls native code. */
static struct profile *make(void)
{
	struct profile *p = profile_new();
	struct profile_event *event = vec_push(&p->events);
	uint32_t thread = profile_add_thread(p, 7, 7, "python3");
	uint32_t top = frame_of(p, function_of(p, FRAME_PYTHON, "main"), 1);
	uint32_t work = frame_of(p, function_of(p, FRAME_PYTHON, "work"), 20);
	uint32_t leaf = frame_of(p, function_of(p, FRAME_NATIVE, "memcpy"), 0);

	event->name = "cycles";
	event->sampled = true;
	for (uint32_t i = 0; i < RARE; i++) {
		char name[16];
		struct profile_cell *cell;
		uint32_t caller, stack;

		snprintf(name, sizeof(name), "caller%u", i);
		caller = frame_of(p, function_of(p, FRAME_PYTHON, name), 5 + i);
		stack = stacks_add(&p->stacks, (uint32_t[]){leaf, work, caller, top}, 4);
		cell = keyed_at(&p->cells, profile_add_cell(p, thread, stack, 0));
		cell->samples = i ? 1 : 1000;
	}
	return p;
}

static void test_rare_stacks_lose_their_middle(void **state)
{
	struct profile *p = make();
	struct view_matcher *matcher;
	struct page_stacks all, few;

	assert_int_equal(view_matcher_new(&matcher, p, NULL, NULL), 0);
	assert_int_equal(page_stacks_init(&all, p, matcher, 1000, NULL), 0);
	assert_int_equal(all.fewest, 0);
	assert_int_equal(all.items.len, 1 + 1 + 3 * RARE);
	assert_int_equal(page_stacks_init(&few, p, matcher, 10, NULL), 0);
	/* main, the hot one's three, and what all others share: work and memcpy right below main.
	 */
	assert_int_equal(few.items.len, 1 + 4 + 2);
	assert_true(few.fewest > 1);
	assert_int_equal(few.cut_samples, RARE - 1);
	for (size_t i = 0; i < profile_cell_count(p); i++) {
		const struct profile_cell *cell = profile_cell(p, i);
		const struct page_stack *stack = &few.items.items[few.of_stack[cell->stack]];
		const struct page_stack *python = &few.items.items[stack->parent];
		const char *name = profile_text(p, profile_function(p, stack->function)->name);

		assert_string_equal(name, "memcpy");
		assert_int_equal(python->line, 20);
		assert_true(stack->parent < few.of_stack[cell->stack]);
	}
	page_stacks_fini(&all);
	page_stacks_fini(&few);
	view_matcher_free(matcher);
	profile_free(p);
}

static uint8_t digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
		"+/";

	return (uint8_t)(strchr(digits, c) - digits);
}

/* Of every length modulo 3, and empty. */
static void test_pack_is_gzip_in_base64(void **state)
{
	for (size_t len = 0; len < 40; len++) {
		struct strbuf in = {0}, out = {0};
		uint8_t bytes[256] = {0}, back[64];
		z_stream stream = {.next_in = bytes, .next_out = back, .avail_out = sizeof(back)};
		size_t count;

		for (size_t i = 0; i < len; i++)
			strbuf_char(&in, (char)(i * 37));
		assert_int_equal(pack_base64(&out, &in, NULL), 0);
		assert_int_equal(out.len % 4, 0);
		count = out.len / 4 * 3;
		assert_true(count <= sizeof(bytes));
		for (size_t i = 0, at = 0; i < out.len; i += 4, at += 3) {
			uint32_t word = 0;

			for (size_t j = 0; j < 4; j++)
				word = word << 6 |
				       (out.buf[i + j] == '=' ? 0u : digit(out.buf[i + j]));
			bytes[at] = (uint8_t)(word >> 16);
			bytes[at + 1] = (uint8_t)(word >> 8);
			bytes[at + 2] = (uint8_t)word;
		}
		stream.avail_in = (uInt)count;
		assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
		assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
		assert_int_equal(stream.total_out, len);
		assert_memory_equal(back, in.buf ? in.buf : "", len);
		inflateEnd(&stream);
		strbuf_fini(&in);
		strbuf_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices_join_where_rows_are_many),
		cmocka_unit_test(test_slices_take_any_time),
		cmocka_unit_test(test_rare_stacks_lose_their_middle),
		cmocka_unit_test(test_pack_is_gzip_in_base64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
