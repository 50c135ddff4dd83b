#include "base/clock.h"
#include "browse/pages.h"
#include "browse/report.h"
#include "output/summary.h"

#include <stdio.h>
#include <stdlib.h>

/* So many rows at most, and so many levels, are opened by one key. */
#define OPEN_ROWS 5000
#define OPEN_LEVELS 32

/* So long a key waits for what is being made ready: nobody sees it. */
#define WAIT_NS 20000000u

static struct screen_tree_row *selected(struct report_view *view)
{
	if (view->list.selected >= view->tree.rows.len)
		return NULL;
	return &view->tree.rows.items[view->list.selected];
}

/* A key that needs call trees before they are ready is answered at once, and does what it does when
 * they are. *rc is 0 where it has to wait. */
static bool are_calls_ready(struct report_view *view,
			    int (*act)(struct screen *screen, void *self, int argument,
				       struct err *err),
			    int *rc, struct err *err)
{
	*rc = report_data_calls(view, clock_now_ns() + WAIT_NS, err);
	if (*rc == 0) {
		view->waiting = act;
		view->waiting_row = view->list.selected;
		screen_say(view->screen, "finding out who calls what ...");
	}
	return *rc > 0;
}

/* Below a function that was opened come its callers and callees, which open with it. */
static int open_sides(struct report_view *view, size_t row, struct err *err)
{
	int rc = 0;

	if (NODE_KIND(view->tree.rows.items[row].node) != NODE_ROW)
		return 0;
	for (size_t i = screen_tree_end(&view->tree, row); i-- > row + 1 && !rc;)
		if (view->tree.rows.items[i].depth == view->tree.rows.items[row].depth + 1)
			rc = screen_tree_open(&view->tree, i, err);
	return rc;
}

static int expand(struct screen *screen, void *self, int argument, struct err *err)
{
	struct report_view *view = self;
	const struct screen_tree_row *row = selected(view);
	int rc;

	if (!row || row->open || !are_calls_ready(view, expand, &rc, err))
		return row && !row->open ? rc : 0;
	rc = screen_tree_open(&view->tree, view->list.selected, err);
	if (!rc && selected(view)->leaf)
		screen_say(screen, "nothing calls this, and it calls nothing");
	return rc ? rc : open_sides(view, view->list.selected, err);
}

static int collapse(struct screen *screen, void *self, int argument, struct err *err)
{
	struct report_view *view = self;
	const struct screen_tree_row *row = selected(view);

	if (row && row->open)
		screen_tree_close(&view->tree, view->list.selected);
	else if (row)
		view->list.selected = screen_tree_parent(&view->tree, view->list.selected);
	return 0;
}

static int toggle(struct screen *screen, void *self, int argument, struct err *err)
{
	const struct screen_tree_row *row = selected(self);

	return row && row->open ? collapse(screen, self, 0, err) : expand(screen, self, 0, err);
}

static int expand_all(struct screen *screen, void *self, int argument, struct err *err)
{
	struct report_view *view = self;
	int rc;

	if (!are_calls_ready(view, expand_all, &rc, err))
		return rc;
	rc = screen_tree_open_all(&view->tree, view->list.selected, OPEN_LEVELS, OPEN_ROWS, err);
	if (rc > 0)
		screen_say(screen, "there is more below than is opened at once");
	return rc < 0 ? rc : 0;
}

static int collapse_all(struct screen *screen, void *self, int argument, struct err *err)
{
	struct report_view *view = self;

	while (selected(view) && selected(view)->depth)
		view->list.selected = screen_tree_parent(&view->tree, view->list.selected);
	for (size_t i = view->tree.rows.len; i-- > 0;) {
		if (view->tree.rows.items[i].depth || !view->tree.rows.items[i].open)
			continue;
		if (i < view->list.selected)
			view->list.selected -= screen_tree_end(&view->tree, i) - i - 1;
		screen_tree_close(&view->tree, i);
	}
	return 0;
}

static int sort_by(struct report_view *view, unsigned int sort, struct err *err)
{
	view->sort = sort;
	/* The metrics of a ranking by total are those of the whole. */
	view->metrics.basis = sort == SORT_TOTAL ? MEASURE_TOTAL : MEASURE_SELF;
	return report_data_sort(view, err);
}

static int sort_chosen(struct screen *screen, void *self, size_t index, struct err *err)
{
	return sort_by(self, (unsigned int)index, err);
}

static int choose_sort(struct screen *screen, void *self, int argument, struct err *err)
{
	struct report_view *view = self;
	const char *names[SORT_METRICS + METRICS_MAX];

	for (unsigned int i = 0; i < report_sorts(view); i++)
		names[i] = report_sort_name(view, i);
	return screen_choose(screen, "Sort by", names, report_sorts(view), view->sort, sort_chosen,
			     view, err);
}

static int next_sort(struct screen *screen, void *self, int step, struct err *err)
{
	struct report_view *view = self;
	unsigned int count = report_sorts(view);

	return sort_by(view, (view->sort + count + (unsigned int)step) % count, err);
}

/* The next event that has samples, and columns. */
int report_next_event(struct screen *screen, struct report_view *view, int step, struct err *err)
{
	uint32_t count = (uint32_t)profile_event_count(view->browse->profile);
	uint32_t event = view->report.event;
	int rc;

	do
		event = (event + count + (uint32_t)step) % count;
	while (event != view->report.event && (!rows_event_shown(&view->report, event) ||
					       !names_event_has_samples(view->names, event)));
	if (event == view->report.event) {
		screen_say(screen, "the recording has no other event with samples");
		return 0;
	}
	view->report.event = event;
	rc = report_data_layout(view, err);
	return rc ? rc : report_data_sort(view, err);
}

static int next_event(struct screen *screen, void *self, int step, struct err *err)
{
	return report_next_event(screen, self, step, err);
}

static int annotate(struct screen *screen, void *self, int argument, struct err *err)
{
	struct report_view *view = self;
	uint32_t function = report_function(view, view->list.selected);
	const struct screen_tree_row *row = selected(view);

	if (function == UINT32_MAX || NODE_KIND(row->node) == NODE_SIDE)
		return 0;
	return annotate_open(screen, view, function, err);
}

static int zoom_out(struct screen *screen, void *self, int argument, struct err *err)
{
	struct report_view *view = self;

	if (zooms_pop(&view->zooms))
		return report_data_load(view, err);
	screen_say(screen, "nothing is zoomed into; q leaves");
	return 0;
}

static int zoom_chosen(struct screen *screen, void *self, size_t index, struct err *err)
{
	struct report_view *view = self;

	int rc = choices_take(&view->choices, index, &view->zooms, err);

	return rc ? rc : report_data_load(view, err);
}

/* Lets the user choose one of those that have samples. */
static int choose_zoom(struct screen *screen, void *self, int into, struct err *err)
{
	struct report_view *view = self;
	const char **words;
	size_t count;
	int rc = choices_find(&view->choices, view, (enum zoom_into)into, err);

	count = view->choices.list.len;
	if (!rc && !count)
		screen_say(screen, "there is no %s with samples", zoom_name((enum zoom_into)into));
	if (rc || !count)
		return rc;
	words = calloc(count, sizeof(*words));
	if (!words)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++)
		words[i] = view->choices.list.items[i].word;
	rc = screen_choose(screen, "Zoom into", words, count, 0, zoom_chosen, view, err);
	free(words);
	return rc;
}

/* Into what the row is of: a group's keys, a function's module or file. */
static int zoom_row(struct screen *screen, void *self, int argument, struct err *err)
{
	struct report_view *view = self;
	uint32_t function = report_function(view, view->list.selected);
	const struct screen_tree_row *row = selected(view);
	size_t before = view->zooms.stack.len;
	int rc = 0;

	if (!row)
		return 0;
	if (function != UINT32_MAX)
		rc = zooms_push_function(&view->zooms, view->browse->profile, view->names, function,
					 err);
	for (size_t i = 0; view->groups && i < view->groups->key_count && !rc; i++)
		rc = zooms_push_group(
			&view->zooms, view->browse->profile, view->names, view->groups->keys[i],
			view_group_value(view->groups,
					 &view->report.view->rows[NODE_INDEX(row->node)], i),
			err);
	if (rc || view->zooms.stack.len != before)
		return rc ? rc : report_data_load(view, err);
	screen_say(screen, "this row names nothing to zoom into");
	return 0;
}

static int enter(struct screen *screen, void *self, int argument, struct err *err)
{
	struct report_view *view = self;

	return view->groups ? zoom_row(screen, self, 0, err) : annotate(screen, self, 0, err);
}

static int flame(struct screen *screen, void *self, int argument, struct err *err)
{
	int rc;

	return are_calls_ready(self, flame, &rc, err) ? flame_open(screen, self, err) : rc;
}

static int write_info(FILE *out, void *self, int width, struct err *err)
{
	const struct report_view *view = self;

	summary_head(out, &view->report, view->names);
	if (!view->groups)
		summary_origins(out, view->browse->profile, view->report.view, view->report.event);
	fputc('\n', out);
	summary_metrics(out, &view->metrics);
	summary_losses(out, view->browse->profile, false);
	return 0;
}

static int show_info(struct screen *screen, void *self, int argument, struct err *err)
{
	const struct pages pages = {.write = write_info, .self = self};

	return pages_open(screen, " About the recording", &pages, err);
}

const struct screen_key report_keys[] = {
	{{SCREEN_ENTER}, enter, 0, "annotate", "annotate; zoom into the group"},
	{{'a'}, annotate, 0, NULL, "annotate the function"},
	{{'f'}, flame, 0, "flame", "flame graph of what is shown"},
	{{SCREEN_RIGHT, 'l', '+'}, expand, 0, "callers", "open: what calls it, what it calls"},
	{{SCREEN_LEFT, 'h', '-'}, collapse, 0, NULL, "close, or go to the row above"},
	{{'e'}, toggle, 0, NULL, "open or close the row"},
	{{'E'}, expand_all, 0, NULL, "open the row and all below it"},
	{{'C'}, collapse_all, 0, NULL, "close all rows"},
	{{'s'}, choose_sort, 0, "sort", "choose the column to sort by"},
	{{'>', '.'}, next_sort, 1, NULL, "sort by the next column"},
	{{'<', ','}, next_sort, -1, NULL, "sort by the column before"},
	{{SCREEN_TAB}, next_event, 1, "event", "next event"},
	{{SCREEN_BACKTAB}, next_event, -1, NULL, "event before"},
	{{'t'}, choose_zoom, ZOOM_THREAD, "thread", "zoom into a thread"},
	{{'p'}, choose_zoom, ZOOM_PROCESS, NULL, "zoom into a process"},
	{{'m'}, choose_zoom, ZOOM_MODULE, NULL, "zoom into a module's native code"},
	{{'F'}, choose_zoom, ZOOM_FILE, NULL, "zoom into a Python file and the C it calls"},
	{{'d', 'z'}, zoom_row, 0, NULL, "zoom into this row's module or file"},
	{{SCREEN_ESC, SCREEN_BACKSPACE}, zoom_out, 0, NULL, "zoom out"},
	{{'i'}, show_info, 0, NULL, "about the recording"},
	SCREEN_LAST_KEY,
};
