#ifndef PYPERF_BROWSE_GRID_H
#define PYPERF_BROWSE_GRID_H

#include "output/layout.h"
#include "screen/line.h"

/*
 * The rows of a table that are seen on a screen: those of output/table.h, which are filled for each
 * drawing, and what they mean in terms of the screen. Columns stay where they are while a list
 * scrolls.
 *
 *      grid_begin(&grid, columns, count);
 *      for each row:   fill `count` cells of grid.table, then grid_role() for some of them
 *      grid_fit(&grid, width);
 *      grid_heading(), grid_row()
 */
struct grid {
	struct table table;
	struct table_fit fit;
	int width;
	size_t first; /* for the caller: which row of a list was filled first */
	struct {
		VEC_OF(enum screen_role)
	} roles; /* by cell; those behind are plain */
};

void grid_fini(struct grid *grid);
/* Forgets rows; `columns` must stay, and be the same as before until grid_reset(). */
void grid_begin(struct grid *grid, const struct table_column *columns, size_t count);
/* Forgets widths, too: for other columns, or other rows altogether. */
void grid_reset(struct grid *grid);
/* The role of a column of the row that was filled last. */
void grid_role(struct grid *grid, size_t column, enum screen_role role);
/* The roles of the shares in the row that was filled last: of the event, how hot they are. Nothing
 * where `counts` is NULL. */
void grid_heat(struct grid *grid, const struct layout *layout, uint32_t event,
	       const struct view_count *counts, const uint64_t *period_total);
int grid_fit(struct grid *grid, int width, struct err *err);
/* The line of groups' names where there are any (`index` 0), then that of headings. */
unsigned int grid_headings(const struct grid *grid);
void grid_heading(const struct grid *grid, unsigned int index, struct screen_line *line);
/* `row`: of those that were filled. */
void grid_row(const struct grid *grid, size_t row, struct screen_line *line);

#endif
