#include "base/clock.h"
#include "screen/internal.h"
#include "screen/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The parts of the screen that need no terminal. */

#define MANY 1000000u

struct numbers {
	size_t count, asked;
};

static size_t count_numbers(void *self)
{
	return ((struct numbers *)self)->count;
}

static void put_number(void *self, size_t row, struct screen_line *line)
{
	((struct numbers *)self)->asked++;
	screen_line_printf(line, SCREEN_PLAIN, "Number %zu.", row);
}

static const struct screen_rows number_rows = {.count = count_numbers, .row = put_number};

static void test_line(void **state)
{
	struct screen_line line = {0};

	screen_line_add(&line, SCREEN_HOT, "é");
	screen_line_escape(&line, SCREEN_NATIVE, "a\033[31m\nb", 8);
	assert_string_equal(strbuf_text(&line.text), "éa\\x1b[31m\\nb");
	screen_line_pad(&line, 16);
	screen_line_add(&line, SCREEN_PLAIN, "x");
	assert_int_equal(screen_line_width(&line), 17);
	screen_line_pad(&line, 3);
	assert_int_equal(screen_line_width(&line), 18);
	assert_int_equal(line.parts.items[1].start, 2);
	assert_int_equal(line.parts.items[1].role, SCREEN_NATIVE);
	/* The é and the escape sequence's first column. */
	screen_line_skip(&line, 2);
	assert_string_equal(strbuf_text(&line.text), "\\x1b[31m\\nb   x ");
	assert_int_equal(line.parts.items[1].start, 0);
	assert_int_equal(line.parts.items[1].role, SCREEN_NATIVE);
	assert_int_equal(line.parts.items[2].start, 11);
	screen_line_skip(&line, 100);
	assert_int_equal(screen_line_width(&line), 0);
	screen_line_fini(&line);
	assert_int_equal(screen_heat(0.05), SCREEN_HOT);
	assert_int_equal(screen_heat(0.049), SCREEN_WARM);
	assert_int_equal(screen_heat(0.004), SCREEN_PLAIN);
}

static void test_list_moves(void **state)
{
	struct numbers numbers = {.count = MANY};
	struct screen_list list = {.rows = &number_rows, .self = &numbers};

	screen_list_move(&list, -3);
	assert_int_equal(list.selected, 0);
	screen_list_move(&list, 30);
	screen_list_settle(&list, 10);
	assert_int_equal(list.top, 21);
	screen_list_move(&list, -5);
	screen_list_settle(&list, 10);
	assert_int_equal(list.top, 21);
	screen_list_scroll(&list, 100);
	assert_int_equal(list.top, 121);
	assert_int_equal(list.selected, 121);
	screen_list_scroll(&list, -200);
	assert_int_equal(list.top, 0);
	assert_int_equal(list.selected, 9);
	screen_list_move(&list, MANY);
	screen_list_settle(&list, 10);
	assert_int_equal(list.selected, MANY - 1);
	assert_int_equal(list.top, MANY - 10);
	/* A list that shrank. */
	numbers.count = 4;
	screen_list_settle(&list, 10);
	assert_int_equal(list.selected, 3);
	assert_int_equal(list.top, 0);
	numbers.count = 0;
	screen_list_settle(&list, 10);
	assert_int_equal(list.selected, 0);
	assert_int_equal(numbers.asked, 0);
}

static void test_search(void **state)
{
	struct numbers numbers = {.count = 1000};
	struct screen_list list = {.rows = &number_rows, .self = &numbers};

	assert_false(screen_list_search(&list, NULL, 1));
	assert_true(screen_list_search(&list, "NUMBER 7.", 1));
	assert_int_equal(screen_list_search_on(&list, UINT64_MAX), SCREEN_FOUND);
	assert_int_equal(list.selected, 7);
	assert_true(screen_list_search(&list, "99.", 1));
	assert_int_equal(screen_list_search_on(&list, UINT64_MAX), SCREEN_FOUND);
	assert_int_equal(list.selected, 99);
	/* Up, and on from the other end. */
	assert_true(screen_list_search(&list, NULL, -1));
	assert_int_equal(screen_list_search_on(&list, UINT64_MAX), SCREEN_FOUND);
	assert_int_equal(list.selected, 999);
	assert_true(screen_list_search(&list, "nothing", 1));
	assert_int_equal(screen_list_search_on(&list, UINT64_MAX), SCREEN_NOT_FOUND);
	assert_int_equal(list.selected, 999);
	/* What takes long goes on later. */
	numbers.count = MANY;
	numbers.asked = 0;
	assert_true(screen_list_search(&list, "nothing", 1));
	assert_int_equal(screen_list_search_on(&list, clock_now_ns()), SCREEN_SEARCHING);
	assert_true(numbers.asked < 1000);
	screen_list_fini(&list);
}

/* Below n lie 10 n + 1 and 10 n + 2, down to numbers of four digits. */
static int add_children(void *self, struct screen_tree *tree, const struct screen_tree_row *row,
			struct err *err)
{
	int rc = 0;

	if (row->node == 66)
		return err_set(err, ERR_FAILED, "66 has no children");
	if (row->node >= 1000)
		return 0;
	for (uint64_t i = 1; i <= 2 && !rc; i++)
		rc = screen_tree_add(tree, 10 * row->node + i, false, err);
	return rc;
}

static void check_rows(const struct screen_tree *tree, const char *wanted)
{
	struct strbuf text = {0};

	for (size_t i = 0; i < tree->rows.len; i++)
		strbuf_printf(&text, "%s%d:%d", i ? " " : "", (int)tree->rows.items[i].depth,
			      (int)tree->rows.items[i].node);
	assert_string_equal(strbuf_text(&text), wanted);
	strbuf_fini(&text);
}

static void test_tree(void **state)
{
	struct screen_tree tree = {.children = add_children};
	struct err err = {0};

	assert_int_equal(screen_tree_add(&tree, 5, false, &err), 0);
	assert_int_equal(screen_tree_add(&tree, 66, false, &err), 0);
	assert_int_equal(screen_tree_add(&tree, 1000, false, &err), 0);
	assert_int_equal(screen_tree_rooted(&tree, &err), 0);
	assert_int_equal(screen_tree_open(&tree, 0, &err), 0);
	assert_int_equal(screen_tree_open(&tree, 2, &err), 0);
	check_rows(&tree, "0:5 1:51 1:52 2:521 2:522 0:66 0:1000");
	assert_int_equal(screen_tree_parent(&tree, 4), 2);
	assert_int_equal(screen_tree_parent(&tree, 2), 0);
	assert_int_equal(screen_tree_parent(&tree, 5), 5);
	/* Open already; an error; nothing below, which is known from then on. */
	assert_int_equal(screen_tree_open(&tree, 0, &err), 0);
	assert_int_equal(screen_tree_open(&tree, 5, &err), ERR_FAILED);
	assert_int_equal(screen_tree_open(&tree, 6, &err), 0);
	assert_true(tree.rows.items[6].leaf);
	check_rows(&tree, "0:5 1:51 1:52 2:521 2:522 0:66 0:1000");
	screen_tree_close(&tree, 0);
	check_rows(&tree, "0:5 0:66 0:1000");
	assert_int_equal(screen_tree_open_all(&tree, 0, 2, 100, &err), 0);
	check_rows(&tree, "0:5 1:51 2:511 2:512 1:52 2:521 2:522 0:66 0:1000");
	screen_tree_close(&tree, 0);
	assert_int_equal(screen_tree_open_all(&tree, 0, 9, 6, &err), 1);
	check_rows(&tree, "0:5 1:51 2:511 2:512 1:52 0:66 0:1000");
	screen_tree_fini(&tree);
}

static void test_keys(void **state)
{
	struct strbuf names = {0};
	const struct screen_key *key = screen_key_find(screen_list_keys, SCREEN_CTRL('f'));

	screen_key_names(key, SCREEN_KEY_CODES, &names);
	assert_string_equal(strbuf_text(&names), "PgDn, ^F, Space");
	assert_null(screen_key_find(screen_list_keys, 'z'));
	assert_null(screen_key_find(NULL, 'z'));
	strbuf_fini(&names);
}

static void type(struct screen *screen, const char *codes)
{
	struct err err = {0};

	for (; *codes; codes++)
		assert_int_equal(prompt_key(screen, *codes, &err), 0);
}

static int keep_text(struct screen *screen, void *self, const char *text, struct err *err)
{
	snprintf(self, 32, "%s", text);
	return 0;
}

static void test_prompt(void **state)
{
	struct screen screen = {0};
	struct err err = {0};
	char text[32] = "";

	prompt_open(&screen, "?", "ab", keep_text, text);
	type(&screen, "cd");
	assert_int_equal(prompt_key(&screen, SCREEN_HOME, &err), 0);
	assert_int_equal(prompt_key(&screen, SCREEN_DELETE, &err), 0);
	type(&screen, "X");
	assert_int_equal(prompt_key(&screen, SCREEN_END, &err), 0);
	assert_int_equal(prompt_key(&screen, SCREEN_LEFT, &err), 0);
	assert_int_equal(prompt_key(&screen, SCREEN_BACKSPACE, &err), 0);
	assert_int_equal(prompt_key(&screen, SCREEN_ENTER, &err), 0);
	assert_string_equal(text, "Xbd");
	assert_null(screen.prompt.question);
	prompt_open(&screen, "?", "", keep_text, text);
	type(&screen, "y");
	assert_int_equal(prompt_key(&screen, SCREEN_ESC, &err), 0);
	assert_null(screen.prompt.question);
	assert_string_equal(text, "Xbd");
	strbuf_fini(&screen.prompt.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),   cmocka_unit_test(test_list_moves),
		cmocka_unit_test(test_search), cmocka_unit_test(test_tree),
		cmocka_unit_test(test_keys),   cmocka_unit_test(test_prompt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
