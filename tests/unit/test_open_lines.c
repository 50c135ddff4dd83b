#include "browse/open_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* The plain definition: walk all lines and count. */
#define LINES 60

struct model {
	size_t below[LINES];
	unsigned int parts[LINES];
};

static void check(const struct open_lines *lines, const struct model *model)
{
	size_t row = 0;

	for (uint32_t line = 0; line < LINES; line++) {
		assert_int_equal(open_lines_row(lines, line), row);
		assert_int_equal(open_lines_parts(lines, line), model->parts[line]);
		for (size_t i = 0; i <= model->below[line]; i++) {
			size_t below;

			assert_int_equal(open_lines_line(lines, row++, &below), line);
			assert_int_equal(below, i);
		}
	}
	assert_int_equal(open_lines_rows(lines), row);
}

static void test_any_order(void **state)
{
	struct open_lines lines = {.lines = LINES};
	struct model model = {0};

	srand(1);
	check(&lines, &model);
	for (int i = 0; i < 2000; i++) {
		uint32_t line = (uint32_t)rand() % LINES;

		model.below[line] = rand() % 3 ? (size_t)rand() % 7 : 0;
		model.parts[line] = model.below[line] ? 1 + (unsigned int)rand() % 3 : 0;
		assert_int_equal(open_lines_set(&lines, line, model.parts[line], model.below[line]),
				 0);
		check(&lines, &model);
	}
	open_lines_fini(&lines);
}

static void test_no_lines(void **state)
{
	struct open_lines lines = {0};

	assert_int_equal(open_lines_rows(&lines), 0);
	open_lines_fini(&lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_no_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
