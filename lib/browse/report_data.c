#include "browse/report.h"

#include <stdlib.h>
#include <string.h>

/* What a row is ordered by. */
struct sort_key {
	double figure;	  /* descending; -INFINITY: has none */
	const char *text; /* ascending; NULL where figures order */
	uint32_t row;
};

unsigned int report_sorts(const struct report_view *view)
{
	return SORT_METRICS + (unsigned int)view->metrics.count;
}

const char *report_sort_name(const struct report_view *view, unsigned int sort)
{
	static const char *const names[] = {
		[SORT_SELF] = "self",
		[SORT_TOTAL] = "total",
		[SORT_NAME] = "function",
		[SORT_PLACE] = "file",
	};

	if (sort < SORT_METRICS)
		return names[sort];
	return view->metrics.measures.plans[view->metrics.chosen[sort - SORT_METRICS]]
		.metric->heading;
}

static struct sort_key key_of(const struct report_view *view, uint32_t index)
{
	const struct view_row *row = &view->report.view->rows[index];
	const struct view_count *count = &row->counts[view->report.event];
	struct sort_key key = {.row = index};
	const struct profile_function *f;

	switch (view->sort) {
	case SORT_SELF:
		key.figure = (double)count->self;
		break;
	case SORT_TOTAL:
		key.figure = (double)count->total;
		break;
	case SORT_NAME:
	case SORT_PLACE:
		if (view->groups)
			break;
		f = profile_function(view->browse->profile, row->function);
		key.text = profile_text(view->browse->profile,
					view->sort == SORT_NAME ? f->qualname : f->file);
		break;
	default:
		key.figure = metric_columns_rank(&view->metrics, view->report.view, row,
						 view->metrics.chosen[view->sort - SORT_METRICS]);
	}
	return key;
}

/* Rows of equal keys stay in the order that the view has them in. */
static int by_key(const void *a, const void *b)
{
	const struct sort_key *ka = a, *kb = b;
	int rc = ka->text && kb->text ? strcmp(ka->text, kb->text) : 0;

	if (rc)
		return rc;
	if (ka->figure != kb->figure)
		return ka->figure < kb->figure ? 1 : -1;
	return ka->row < kb->row ? -1 : ka->row > kb->row;
}

int report_data_sort(struct report_view *view, struct err *err)
{
	const struct view *rows = view->report.view;
	struct sort_key *keys = malloc((rows->count + 1) * sizeof(*keys));
	size_t count = 0;
	bool below;
	int rc = keys ? 0 : err_nomem(err);

	screen_tree_reset(&view->tree);
	for (size_t i = 0; keys && i < rows->count; i++)
		if (rows_pass(&view->report, &rows->rows[i], &below))
			keys[count++] = key_of(view, (uint32_t)i);
	if (count)
		qsort(keys, count, sizeof(*keys), by_key);
	for (size_t i = 0; i < count && !rc; i++)
		rc = screen_tree_add(&view->tree, NODE(NODE_ROW, keys[i].row), view->groups != NULL,
				     err);
	free(keys);
	view->list.selected = view->list.top = 0;
	return rc ? rc : screen_tree_rooted(&view->tree, err);
}

int report_data_layout(struct report_view *view, struct err *err)
{
	grid_reset(&view->grid);
	layout_fini(&view->layout);
	return rows_layout(&view->layout, &view->report, view->names, err);
}

int report_data_load(struct report_view *view, struct err *err)
{
	const struct browse *browse = view->browse;
	const struct view_filter *filter = zooms_filter(&view->zooms);
	struct view *functions = NULL;
	struct view_groups *groups = NULL;
	int rc = 0;

	if (!view->basis)
		rc = view_basis_new(&view->basis, browse->profile, err);
	if (rc)
		return rc;
	/* Groups are what is zoomed into; below that there are functions. */
	if (browse->key_count && !view->zooms.stack.len)
		rc = view_groups(&groups, browse->profile, filter, browse->keys, browse->key_count,
				 browse->order, view->report.event, err);
	else
		rc = view_functions_of(&functions, view->basis, filter, browse->order,
				       view->report.event, err);
	if (rc)
		return rc;
	view_free(view->functions);
	view_groups_free(view->groups);
	view->functions = functions;
	view->groups = groups;
	view->report.groups = groups;
	view->report.view = groups ? &groups->view : functions;
	if (view->calls_begun) {
		calltree_refilter(&view->calls);
		screen_tick(view->screen, view);
	}
	rc = report_data_layout(view, err);
	return rc ? rc : report_data_sort(view, err);
}

int report_data_calls(struct report_view *view, uint64_t until_ns, struct err *err)
{
	int rc = 0;

	if (!view->calls_begun)
		rc = calltree_init(&view->calls, view->browse->profile, err);
	view->calls_begun = !rc;
	return rc ? rc : calltree_prepare(&view->calls, zooms_filter(&view->zooms), until_ns, err);
}

static int add_side(struct report_view *view, struct screen_tree *tree, uint32_t function,
		    enum calltree_side side, struct err *err)
{
	size_t branch;
	int rc = calltree_of(&view->calls, function, side, &branch, err);

	if (!rc)
		rc = calltree_open(&view->calls, branch, view->report.event, err);
	if (!rc && view->calls.branches.items[branch].children_count)
		rc = screen_tree_add(tree, NODE(NODE_SIDE, branch), false, err);
	return rc;
}

static int add_branches(struct report_view *view, struct screen_tree *tree, size_t index,
			struct err *err)
{
	const struct calltree_branch *branch;
	int rc = calltree_open(&view->calls, index, view->report.event, err);

	if (rc)
		return rc;
	branch = &view->calls.branches.items[index];
	for (size_t i = 0; i < branch->children_count && !rc; i++)
		rc = screen_tree_add(tree, NODE(NODE_BRANCH, branch->children + i), false, err);
	return rc;
}

int report_data_children(void *self, struct screen_tree *tree, const struct screen_tree_row *row,
			 struct err *err)
{
	struct report_view *view = self;
	uint32_t function;
	int rc = report_data_calls(view, UINT64_MAX, err);

	if (rc < 0 || NODE_KIND(row->node) != NODE_ROW)
		return rc < 0 ? rc : add_branches(view, tree, NODE_INDEX(row->node), err);
	function = view->report.view->rows[NODE_INDEX(row->node)].function;
	rc = add_side(view, tree, function, CALLTREE_CALLERS, err);
	return rc ? rc : add_side(view, tree, function, CALLTREE_CALLEES, err);
}

uint32_t report_function(const struct report_view *view, size_t row)
{
	uint64_t node;

	if (row >= view->tree.rows.len || view->groups)
		return UINT32_MAX;
	node = view->tree.rows.items[row].node;
	return NODE_KIND(node) == NODE_ROW ? view->report.view->rows[NODE_INDEX(node)].function
					   : view->calls.branches.items[NODE_INDEX(node)].function;
}

void report_data_fini(struct report_view *view)
{
	if (view->calls_begun)
		calltree_fini(&view->calls);
	screen_tree_fini(&view->tree);
	layout_fini(&view->layout);
	view_free(view->functions);
	view_basis_free(view->basis);
	view_groups_free(view->groups);
	names_free(view->names);
	zooms_fini(&view->zooms);
	choices_fini(&view->choices);
}
