#include "screen/tree.h"

#include <string.h>

void screen_tree_fini(struct screen_tree *tree)
{
	vec_fini(&tree->rows);
	vec_fini(&tree->added);
}

void screen_tree_reset(struct screen_tree *tree)
{
	tree->rows.len = 0;
	tree->added.len = 0;
}

int screen_tree_add(struct screen_tree *tree, uint64_t node, bool leaf, struct err *err)
{
	struct screen_tree_row *row = vec_push(&tree->added);

	if (!row)
		return err_nomem(err);
	*row = (struct screen_tree_row){.node = node, .leaf = leaf};
	return 0;
}

/* Puts what was added before the row `at`. */
static int take_added(struct screen_tree *tree, size_t at, uint32_t depth, struct err *err)
{
	size_t count = tree->added.len, behind = tree->rows.len - at;

	if (!count)
		return 0;
	if (!vec_reserve(&tree->rows, tree->rows.len + count)) {
		tree->added.len = 0;
		return err_nomem(err);
	}
	memmove(tree->rows.items + at + count, tree->rows.items + at,
		behind * sizeof(*tree->rows.items));
	memcpy(tree->rows.items + at, tree->added.items, count * sizeof(*tree->rows.items));
	for (size_t i = at; i < at + count; i++)
		tree->rows.items[i].depth = depth;
	tree->rows.len += count;
	tree->added.len = 0;
	return 0;
}

int screen_tree_rooted(struct screen_tree *tree, struct err *err)
{
	return take_added(tree, tree->rows.len, 0, err);
}

int screen_tree_open(struct screen_tree *tree, size_t row, struct err *err)
{
	struct screen_tree_row *r = &tree->rows.items[row];
	int rc;

	if (row >= tree->rows.len || r->open || r->leaf)
		return 0;
	rc = tree->children(tree->self, tree, r, err);
	if (rc < 0) {
		tree->added.len = 0;
		return rc;
	}
	r->leaf = !tree->added.len;
	r->open = !r->leaf;
	return take_added(tree, row + 1, r->depth + 1, err);
}

size_t screen_tree_end(const struct screen_tree *tree, size_t row)
{
	size_t end = row + 1;

	while (end < tree->rows.len && tree->rows.items[end].depth > tree->rows.items[row].depth)
		end++;
	return end;
}

void screen_tree_close(struct screen_tree *tree, size_t row)
{
	size_t end;

	if (row >= tree->rows.len || !tree->rows.items[row].open)
		return;
	end = screen_tree_end(tree, row);
	memmove(tree->rows.items + row + 1, tree->rows.items + end,
		(tree->rows.len - end) * sizeof(*tree->rows.items));
	tree->rows.len -= end - row - 1;
	tree->rows.items[row].open = false;
}

int screen_tree_open_all(struct screen_tree *tree, size_t row, uint32_t depth, size_t most,
			 struct err *err)
{
	uint32_t top;
	int rc;

	if (row >= tree->rows.len)
		return 0;
	top = tree->rows.items[row].depth;
	/* Rows below are behind, so they come by in their turn. */
	for (size_t i = row; i < tree->rows.len; i++) {
		const struct screen_tree_row *r = &tree->rows.items[i];

		if (i > row && r->depth <= top)
			break;
		if (r->depth - top >= depth || r->leaf || r->open)
			continue;
		if (tree->rows.len >= most)
			return 1;
		rc = screen_tree_open(tree, i, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

size_t screen_tree_parent(const struct screen_tree *tree, size_t row)
{
	for (size_t i = row; i > 0; i--)
		if (tree->rows.items[i - 1].depth < tree->rows.items[row].depth)
			return i - 1;
	return row;
}
