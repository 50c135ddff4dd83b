#include "browse/report.h"

#include <stdlib.h>
#include <string.h>

/*
 * A flame graph of text, growing downwards: a row for each depth of the stacks, boxes as wide as
 * their share of the box that is zoomed into. Siblings are ordered by weight, so that what matters
 * is on the left; what is narrower than a column is not drawn.
 */
struct box {
	uint32_t fold;
	int depth, column, width;
	bool odd; /* neighbours differ in this */
};

struct flame {
	struct report_view *report;
	struct calltree *calls;
	uint32_t focus, selected; /* folds; 0 is all */
	int top;		  /* the depth that is drawn first */
	uint32_t sorted_by;	  /* event */
	bool *sorted;		  /* folds whose children are in order */
	uint32_t *position;	  /* of these among calls->children */
	struct {
		VEC_OF(struct box)
	} boxes; /* as they were drawn, row after row of each subtree */
	char *wanted;
};

static uint32_t parent_of(const struct flame *flame, uint32_t fold)
{
	return flame->calls->folds.tree.items[fold].parent;
}

static uint64_t weight_of(const struct flame *flame, uint32_t fold)
{
	return calltree_weight(flame->calls, fold)[flame->report->report.event].total;
}

static int by_weight(const void *a, const void *b, void *ctx)
{
	const uint32_t *fa = a, *fb = b;
	uint64_t wa = weight_of(ctx, *fa), wb = weight_of(ctx, *fb);

	if (wa != wb)
		return wa < wb ? 1 : -1;
	return *fa < *fb ? -1 : *fa > *fb;
}

/* Children are ordered when they are first looked at. */
static void sort_children(struct flame *flame, uint32_t fold)
{
	struct calltree *calls = flame->calls;
	uint32_t first = calls->children.start[fold], end = calls->children.start[fold + 1];

	if (flame->sorted[fold])
		return;
	flame->sorted[fold] = true;
	if (end - first > 1)
		qsort_r(calls->children.items + first, end - first, sizeof(uint32_t), by_weight,
			flame);
	for (uint32_t k = first; k < end; k++)
		flame->position[calls->children.items[k]] = k;
}

/* Children by weight, and those that the event did not see are none. */
static uint32_t first_child(struct flame *flame, uint32_t fold)
{
	uint32_t at = flame->calls->children.start[fold];
	uint32_t child;

	if (at == flame->calls->children.start[fold + 1])
		return 0;
	sort_children(flame, fold);
	child = flame->calls->children.items[at];
	return weight_of(flame, child) ? child : 0;
}

static uint32_t next_sibling(struct flame *flame, uint32_t fold)
{
	uint32_t parent = parent_of(flame, fold), next, child;

	sort_children(flame, parent);
	next = flame->position[fold] + 1;
	if (next == flame->calls->children.start[parent + 1])
		return 0;
	child = flame->calls->children.items[next];
	return weight_of(flame, child) ? child : 0;
}

static int depth_of(const struct flame *flame, uint32_t fold)
{
	int depth = 0;

	for (; fold; fold = parent_of(flame, fold))
		depth++;
	return depth;
}

static bool is_below(const struct flame *flame, uint32_t fold, uint32_t above)
{
	while (fold && fold != above)
		fold = parent_of(flame, fold);
	return fold == above;
}

static void add_name(const struct flame *flame, uint32_t fold, struct strbuf *out)
{
	if (fold)
		names_add_function(flame->report->names, folds_function(&flame->calls->folds, fold),
				   out);
	else
		strbuf_str(out, "all");
}

static enum screen_role role_of(const struct flame *flame, const struct box *box)
{
	static const enum screen_role roles[] = {
		[FRAME_PYTHON] = SCREEN_FLAME_PYTHON,
		[FRAME_NATIVE] = SCREEN_FLAME_NATIVE,
		[FRAME_KERNEL] = SCREEN_FLAME_KERNEL,
	};
	enum frame_kind kind = FRAME_PYTHON;

	if (box->fold)
		kind = profile_function(flame->report->browse->profile,
					folds_function(&flame->calls->folds, box->fold))
			       ->kind;
	/* Each role's twin stands behind it. */
	return (enum screen_role)(roles[kind] + box->odd);
}

static void put_box(const struct flame *flame, const struct screen_area *area,
		    const struct box *box)
{
	enum screen_role role = role_of(flame, box);
	bool selected = box->fold == flame->selected;
	struct screen_line line = {0};

	/* Also to be found where there is no colour. */
	screen_line_add(&line, role, selected ? ">" : "");
	add_name(flame, box->fold, screen_line_part(&line, role));
	screen_line_blanks(&line, role, (size_t)box->width);
	screen_put(area, 1 + box->depth - flame->top, box->column, box->width, &line, selected);
	/* Names do not run into each other. */
	if (box->width > 1) {
		screen_line_reset(&line);
		screen_line_add(&line, role, " ");
		screen_put(area, 1 + box->depth - flame->top, box->column + box->width - 1, 1,
			   &line, selected);
	}
	screen_line_fini(&line);
}

static bool add_box(struct flame *flame, struct box box)
{
	struct box *b = vec_push(&flame->boxes);

	if (b)
		*b = box;
	return b;
}

static int column_at(double position)
{
	return (int)(position + 0.5);
}

/* The boxes below one that lies at `position`, down to the depth that is seen last. */
static void add_children(struct flame *flame, uint32_t fold, int depth, double position,
			 double scale, int last)
{
	bool odd = depth % 2;

	if (depth > last)
		return;
	sort_children(flame, fold);
	for (uint32_t i = flame->calls->children.start[fold];
	     i < flame->calls->children.start[fold + 1]; i++) {
		uint32_t child = flame->calls->children.items[i];
		double width = (double)weight_of(flame, child) * scale;
		int column = column_at(position), end = column_at(position + width);

		/* Those behind are no wider. */
		if (width < 0.5)
			return;
		if (end > column) {
			if (!add_box(flame, (struct box){child, depth, column, end - column, odd}))
				return;
			add_children(flame, child, depth + 1, position, scale, last);
			odd = !odd;
		}
		position += width;
	}
}

static void lay_out(struct flame *flame, const struct screen_area *area)
{
	uint64_t whole = weight_of(flame, flame->focus);
	int depth = depth_of(flame, flame->focus);

	flame->boxes.len = 0;
	for (uint32_t fold = flame->focus;; fold = parent_of(flame, fold)) {
		int at = depth_of(flame, fold);

		if (!add_box(flame, (struct box){fold, at, 0, area->width, at % 2}) || !fold)
			break;
	}
	if (whole)
		add_children(flame, flame->focus, depth + 1, 0, area->width / (double)whole,
			     flame->top + area->height - 2);
}

static const struct box *selected_box(const struct flame *flame)
{
	for (size_t i = 0; i < flame->boxes.len; i++)
		if (flame->boxes.items[i].fold == flame->selected)
			return &flame->boxes.items[i];
	return NULL;
}

static void keep_in_sight(struct flame *flame, const struct screen_area *area)
{
	int depth = depth_of(flame, flame->selected), rows = area->height - 1;

	if (depth < flame->top)
		flame->top = depth;
	if (depth > flame->top + rows - 1)
		flame->top = depth - rows + 1;
}

/* "58.9%  Network.forward  train.py:31   46.4% in itself" */
static void put_selected(const struct flame *flame, const struct screen_area *area)
{
	const struct calltree_weight *count = calltree_weight(flame->calls, flame->selected) +
					      flame->report->report.event;
	uint64_t whole = weight_of(flame, 0);
	double share = figure_share(count->total, whole);
	struct screen_line line = {0};

	screen_line_printf(&line, screen_heat(share), "%6.1f%%", 100 * share);
	screen_line_add(&line, SCREEN_PLAIN, "  ");
	add_name(flame, flame->selected, screen_line_part(&line, SCREEN_STRONG));
	if (flame->selected) {
		screen_line_add(&line, SCREEN_PLAIN, "  ");
		names_add_place(flame->report->names,
				folds_function(&flame->calls->folds, flame->selected),
				screen_line_part(&line, SCREEN_PLAIN));
	}
	if (count->self)
		screen_line_printf(&line, SCREEN_PLAIN, "   %.1f%% in itself",
				   100 * figure_share(count->self, whole));
	screen_put(area, 0, 0, area->width, &line, false);
	screen_line_fini(&line);
}

static void draw(struct screen *screen, void *self, const struct screen_area *area)
{
	struct flame *flame = self;

	if (flame->sorted_by != flame->report->report.event)
		memset(flame->sorted, 0, flame->calls->folds.tree.len * sizeof(*flame->sorted));
	flame->sorted_by = flame->report->report.event;
	keep_in_sight(flame, area);
	lay_out(flame, area);
	/* Where it is too narrow to be seen, what calls it is zoomed into. */
	if (!selected_box(flame)) {
		flame->focus = parent_of(flame, flame->selected);
		lay_out(flame, area);
	}
	put_selected(flame, area);
	for (size_t i = 0; i < flame->boxes.len; i++)
		if (flame->boxes.items[i].depth >= flame->top)
			put_box(flame, area, &flame->boxes.items[i]);
}

/* Of the boxes of a row the nearest to the selected one on that side. */
static int go_aside(struct screen *screen, void *self, int step, struct err *err)
{
	struct flame *flame = self;
	const struct box *from = selected_box(flame), *to = NULL;

	for (size_t i = 0; from && i < flame->boxes.len; i++) {
		const struct box *box = &flame->boxes.items[i];
		int distance = (box->column - from->column) * step;

		if (box->depth == from->depth && distance > 0 &&
		    (!to || distance < (to->column - from->column) * step))
			to = box;
	}
	if (to)
		flame->selected = to->fold;
	return 0;
}

static int go_up(struct screen *screen, void *self, int argument, struct err *err)
{
	struct flame *flame = self;

	flame->selected = flame->selected ? parent_of(flame, flame->selected) : 0;
	return 0;
}

static int go_down(struct screen *screen, void *self, int argument, struct err *err)
{
	struct flame *flame = self;
	uint32_t child = first_child(flame, flame->selected);

	/* Above what is zoomed into there is one way down. */
	if (flame->selected != flame->focus && is_below(flame, flame->focus, flame->selected))
		for (child = flame->focus; parent_of(flame, child) != flame->selected;)
			child = parent_of(flame, child);
	if (child)
		flame->selected = child;
	return 0;
}

static int zoom_in(struct screen *screen, void *self, int argument, struct err *err)
{
	struct flame *flame = self;

	flame->focus = flame->selected;
	return 0;
}

static int zoom_out(struct screen *screen, void *self, int argument, struct err *err)
{
	struct flame *flame = self;

	if (flame->focus)
		flame->focus = parent_of(flame, flame->focus);
	else
		screen_pop(screen);
	return 0;
}

static int zoom_reset(struct screen *screen, void *self, int argument, struct err *err)
{
	((struct flame *)self)->focus = 0;
	return 0;
}

static int annotate(struct screen *screen, void *self, int argument, struct err *err)
{
	const struct flame *flame = self;

	if (!flame->selected || flame->report->groups)
		return 0;
	return annotate_open(screen, flame->report,
			     folds_function(&flame->calls->folds, flame->selected), err);
}

static int next_event(struct screen *screen, void *self, int step, struct err *err)
{
	return report_next_event(screen, ((struct flame *)self)->report, step, err);
}

/* Which functions are wanted, and which boxes have one of them in or below them. */
struct hits {
	bool *functions, *folds;
};

static bool is_hit(const struct flame *flame, const struct hits *hits, uint32_t fold)
{
	return fold && hits->functions[folds_function(&flame->calls->folds, fold)];
}

static int find_hits(const struct flame *flame, struct hits *hits, struct err *err)
{
	size_t functions = profile_function_count(flame->report->browse->profile);
	size_t folds = flame->calls->folds.tree.len;
	struct strbuf name = {0};

	hits->functions = calloc(functions + 1, sizeof(bool));
	hits->folds = calloc(folds + 1, sizeof(bool));
	if (!hits->functions || !hits->folds)
		return err_nomem(err);
	for (uint32_t i = 0; i < functions; i++) {
		strbuf_reset(&name);
		names_add_function(flame->report->names, i, &name);
		hits->functions[i] = strcasestr(strbuf_text(&name), flame->wanted);
	}
	strbuf_fini(&name);
	for (uint32_t i = (uint32_t)folds; i-- > 1;) {
		if (!weight_of(flame, i))
			continue;
		hits->folds[i] |= is_hit(flame, hits, i);
		hits->folds[parent_of(flame, i)] |= hits->folds[i];
	}
	return 0;
}

/* The first of the box and those on its right that has a hit in or below it; 0: none. */
static uint32_t hit_from(struct flame *flame, const struct hits *hits, uint32_t fold)
{
	while (fold && !hits->folds[fold])
		fold = next_sibling(flame, fold);
	return fold;
}

/* The box behind, from left to right and downwards first, on a way to hits; 0 behind the last. */
static uint32_t box_behind(struct flame *flame, const struct hits *hits, uint32_t fold)
{
	uint32_t next = hit_from(flame, hits, first_child(flame, fold));

	while (!next && fold) {
		next = hit_from(flame, hits, next_sibling(flame, fold));
		fold = parent_of(flame, fold);
	}
	return next;
}

static int find_next(struct screen *screen, void *self, int argument, struct err *err)
{
	struct flame *flame = self;
	struct hits hits = {0};
	uint32_t at = flame->selected;
	int rc;

	if (!flame->wanted) {
		screen_say(screen, "nothing was searched for yet: / does");
		return 0;
	}
	rc = find_hits(flame, &hits, err);
	if (!rc && !hits.folds[0])
		screen_say(screen, "'%s' is not here", flame->wanted);
	if (!rc && hits.folds[0]) {
		do
			at = box_behind(flame, &hits, at);
		while (!is_hit(flame, &hits, at));
		flame->selected = at;
	}
	free(hits.functions);
	free(hits.folds);
	return rc;
}

static int search(struct screen *screen, void *self, const char *text, struct err *err)
{
	struct flame *flame = self;

	if (*text) {
		free(flame->wanted);
		flame->wanted = strdup(text);
	}
	return find_next(screen, self, 0, err);
}

static int ask_search(struct screen *screen, void *self, int argument, struct err *err)
{
	screen_ask(screen, "/", "", search, self);
	return 0;
}

/* A click selects, a second one zooms. */
static int click(struct screen *screen, void *self, int row, int column, struct err *err)
{
	struct flame *flame = self;

	for (size_t i = 0; i < flame->boxes.len; i++) {
		const struct box *box = &flame->boxes.items[i];

		if (box->depth - flame->top + 1 != row || column < box->column ||
		    column >= box->column + box->width)
			continue;
		if (box->fold == flame->selected)
			flame->focus = box->fold;
		flame->selected = box->fold;
		return 0;
	}
	return 0;
}

static void put_title(void *self, struct screen_line *line)
{
	const struct flame *flame = self;

	screen_line_add(line, SCREEN_BAR, " Flame graph: ");
	names_add_event(flame->report->names, flame->report->report.event,
			screen_line_part(line, SCREEN_BAR));
	for (size_t i = 0; i < flame->report->zooms.stack.len; i++) {
		const char *label = flame->report->zooms.stack.items[i].label;

		screen_line_add(line, SCREEN_BAR, "  > ");
		screen_line_escape(line, SCREEN_BAR, label, strlen(label));
	}
}

static void close_flame(void *self)
{
	struct flame *flame = self;

	vec_fini(&flame->boxes);
	free(flame->position);
	free(flame->sorted);
	free(flame->wanted);
	free(flame);
}

static const struct screen_key keys[] = {
	{{SCREEN_UP, 'k'}, go_up, 0, NULL, "to the caller"},
	{{SCREEN_DOWN, 'j'}, go_down, 0, NULL, "to the heaviest that it calls"},
	{{SCREEN_LEFT, 'h'}, go_aside, -1, NULL, "to the box on the left"},
	{{SCREEN_RIGHT, 'l'}, go_aside, 1, NULL, "to the box on the right"},
	{{SCREEN_ENTER, '+'}, zoom_in, 0, "zoom in", "zoom in: the box as wide as the screen"},
	{{SCREEN_ESC, SCREEN_BACKSPACE, '-'}, zoom_out, 0, "out", "zoom out by one; at last back"},
	{{'r', SCREEN_HOME}, zoom_reset, 0, NULL, "zoom out to all"},
	{{'a'}, annotate, 0, "annotate", "annotate the function"},
	{{SCREEN_TAB}, next_event, 1, "event", "next event"},
	{{SCREEN_BACKTAB}, next_event, -1, NULL, "event before"},
	{{'/'}, ask_search, 0, "search", "search for a function"},
	{{'n'}, find_next, 0, NULL, "search on"},
	SCREEN_LAST_KEY,
};

static const struct screen_view flame_view = {
	.name = "flame graph",
	.keys = keys,
	.title = put_title,
	.draw = draw,
	.click = click,
	.close = close_flame,
};

int flame_open(struct screen *screen, struct report_view *report, struct err *err)
{
	struct flame *flame = calloc(1, sizeof(*flame));

	if (!flame)
		return err_nomem(err);
	flame->report = report;
	flame->calls = &report->calls;
	flame->sorted_by = report->report.event;
	flame->position = calloc(flame->calls->folds.tree.len + 1, sizeof(*flame->position));
	flame->sorted = calloc(flame->calls->folds.tree.len + 1, sizeof(*flame->sorted));
	if (!flame->position || !flame->sorted) {
		close_flame(flame);
		return err_nomem(err);
	}
	return screen_push(screen, &flame_view, flame, NULL, err);
}
