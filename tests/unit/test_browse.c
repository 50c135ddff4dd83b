#include "browse/calltree.h"
#include "browse/grid.h"
#include "browse/zoom.h"
#include "profile/import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* What the views of terminals are made of, below what they draw. */

static const char stacks[] = "main;a;b 10\n"
			     "main;a;c 5\n"
			     "main;b 3\n"
			     "main;a;a;b 2\n"
			     "main 1\n";

static struct profile *profile;

static int import_stacks(void **state)
{
	char path[] = "/tmp/pyperf-test-XXXXXX";
	const struct profile_options options = {0};
	struct err err = {0};
	int fd = mkstemp(path), rc = -1;

	if (fd < 0)
		return -1;
	if (write(fd, stacks, strlen(stacks)) == (ssize_t)strlen(stacks))
		rc = profile_import(&profile, path, &options, &err);
	close(fd);
	unlink(path);
	return rc;
}

static int free_profile(void **state)
{
	profile_free(profile);
	return 0;
}

static uint32_t function_named(const char *name)
{
	for (uint32_t i = 0; i < profile_function_count(profile); i++)
		if (strcmp(profile_text(profile, profile_function(profile, i)->name), name) == 0)
			return i;
	fail_msg("no function %s", name);
	return 0;
}

/* "a 12, main 3": a branch's children and their totals; "a 12/2" where they have a self. */
static void check_children(struct calltree *calls, size_t branch, const char *wanted)
{
	const struct calltree_branch *parent;
	struct strbuf text = {0};
	struct err err = {0};

	assert_int_equal(calltree_open(calls, branch, 0, &err), 0);
	parent = &calls->branches.items[branch];
	for (size_t i = 0; i < parent->children_count; i++) {
		const struct calltree_branch *child = &calls->branches.items[parent->children + i];
		uint32_t name = profile_function(profile, child->function)->name;

		strbuf_printf(&text, "%s%s %d", i ? ", " : "", profile_text(profile, name),
			      (int)child->counts[0].total);
		if (child->counts[0].self)
			strbuf_printf(&text, "/%d", (int)child->counts[0].self);
	}
	assert_string_equal(strbuf_text(&text), wanted);
	strbuf_fini(&text);
}

static const struct view_filter nobody = {.comm = "nobody"};

static void test_callers(void **state)
{
	struct calltree calls;
	struct err err = {0};
	size_t b;

	assert_int_equal(calltree_init(&calls, profile, &err), 0);
	assert_int_equal(calltree_prepare(&calls, NULL, UINT64_MAX, &err), 1);
	assert_int_equal(calltree_of(&calls, function_named("b"), CALLTREE_CALLERS, &b, &err), 0);
	assert_int_equal(calls.branches.items[b].counts[0].total, 15);
	check_children(&calls, b, "a 12, main 3");
	check_children(&calls, calls.branches.items[b].children, "main 10, a 2");
	check_children(&calls, calls.branches.items[b].children + 1, "");
	/* Asked again, and weighed again. */
	check_children(&calls, b, "a 12, main 3");
	calltree_refilter(&calls);
	assert_int_equal(calltree_prepare(&calls, &nobody, UINT64_MAX, &err), 1);
	assert_int_equal(calltree_of(&calls, function_named("b"), CALLTREE_CALLERS, &b, &err), 0);
	check_children(&calls, b, "");
	calltree_fini(&calls);
}

/* With no time for more than one step at once, and another filter at each point in between. */
static void test_bit_by_bit(void **state)
{
	struct err err = {0};
	size_t b, steps = 0;

	for (size_t at = 0; at <= steps; at++) {
		struct calltree calls;
		size_t done = 0;

		assert_int_equal(calltree_init(&calls, profile, &err), 0);
		while (calltree_prepare(&calls, at < steps ? &nobody : NULL, 0, &err) == 0 &&
		       (done++ < at || at == 0))
			;
		if (at == 0)
			steps = done;
		calltree_refilter(&calls);
		assert_int_equal(calltree_prepare(&calls, NULL, UINT64_MAX, &err), 1);
		assert_int_equal(
			calltree_of(&calls, function_named("b"), CALLTREE_CALLERS, &b, &err), 0);
		check_children(&calls, b, "a 12, main 3");
		calltree_fini(&calls);
	}
	assert_true(steps > 5);
}

static void test_callees(void **state)
{
	struct calltree calls;
	struct err err = {0};
	size_t a;

	assert_int_equal(calltree_init(&calls, profile, &err), 0);
	assert_int_equal(calltree_prepare(&calls, NULL, UINT64_MAX, &err), 1);
	assert_int_equal(calltree_of(&calls, function_named("a"), CALLTREE_CALLEES, &a, &err), 0);
	/* The call of a within a counts once. */
	assert_int_equal(calls.branches.items[a].counts[0].total, 17);
	check_children(&calls, a, "b 10/10, c 5/5, a 2");
	check_children(&calls, calls.branches.items[a].children + 2, "b 2/2");
	calltree_fini(&calls);
}

static void test_zooms(void **state)
{
	struct zooms zooms = {.base = {.comm = "python3"}};
	struct err err = {0};

	assert_int_equal(zooms_push(&zooms, ZOOM_THREAD, "7", "7 (python3)", &err), 0);
	assert_int_equal(zooms_push(&zooms, ZOOM_MODULE, "/lib/libc.so", NULL, &err), 0);
	assert_string_equal(zooms.stack.items[0].label, "thread 7 (python3)");
	assert_string_equal(zooms.stack.items[1].label, "module /lib/libc.so");
	assert_string_equal(zooms_filter(&zooms)->comm, "python3");
	assert_string_equal(zooms_filter(&zooms)->tids, "7");
	assert_string_equal(zooms_filter(&zooms)->dso, "/lib/libc.so");
	assert_true(zooms_pop(&zooms));
	assert_null(zooms_filter(&zooms)->dso);
	assert_true(zooms_pop(&zooms));
	assert_null(zooms_filter(&zooms)->tids);
	assert_false(zooms_pop(&zooms));
	assert_int_equal(zooms_push_group(&zooms, profile, NULL, VIEW_KIND, 1, &err), 0);
	assert_int_equal(zooms.stack.len, 0);
	assert_int_equal(zooms_push_group(&zooms, profile, NULL, VIEW_PID, 4711, &err), 0);
	assert_string_equal(zooms_filter(&zooms)->pids, "4711");
	zooms_fini(&zooms);
}

static const struct table_column columns[] = {
	{.heading = "n"},
	{.heading = "name", .left = true, .gap = 2, .cut = TABLE_CUT_MIDDLE},
	{.heading = "more", .gap = 1, .drop = 1},
};

static void fill(struct grid *grid, const char *name, const char *more)
{
	grid_begin(grid, columns, 3);
	strbuf_str(table_cell(&grid->table), "1");
	strbuf_str(table_cell(&grid->table), name);
	strbuf_str(table_cell(&grid->table), more);
	grid_role(grid, 1, SCREEN_HOT);
}

static void check_row(const struct grid *grid, const char *wanted)
{
	struct screen_line line = {0};

	grid_row(grid, 0, &line);
	assert_string_equal(strbuf_text(&line.text), wanted);
	for (size_t i = 0; i < line.parts.len; i++)
		assert_int_equal(line.parts.items[i].role, i == 3 ? SCREEN_HOT : SCREEN_PLAIN);
	screen_line_fini(&line);
}

/* Columns stay where they are while rows come and go, until the width is another. */
static void test_grid(void **state)
{
	struct screen_line line = {0};
	struct grid grid = {0};
	struct err err = {0};

	fill(&grid, "a long name of some kind", "2");
	assert_int_equal(grid_fit(&grid, 40, &err), 0);
	check_row(&grid, "1  a long name of some kind    2");
	fill(&grid, "short", "2");
	assert_int_equal(grid_fit(&grid, 40, &err), 0);
	check_row(&grid, "1  short                       2");
	assert_int_equal(grid_headings(&grid), 1);
	grid_heading(&grid, 0, &line);
	assert_string_equal(strbuf_text(&line.text), "n  name                     more");
	assert_int_equal(grid_fit(&grid, 41, &err), 0);
	check_row(&grid, "1  short    2");
	fill(&grid, "a long name of some kind", "2");
	assert_int_equal(grid_fit(&grid, 20, &err), 0);
	check_row(&grid, "1  a lon.. kind    2");
	assert_int_equal(grid_fit(&grid, 15, &err), 0);
	check_row(&grid, "1  a lon.. kind");
	screen_line_fini(&line);
	grid_fini(&grid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_callers), cmocka_unit_test(test_bit_by_bit),
		cmocka_unit_test(test_callees), cmocka_unit_test(test_zooms),
		cmocka_unit_test(test_grid),
	};

	return cmocka_run_group_tests(tests, import_stacks, free_profile);
}
