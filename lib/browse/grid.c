#include "browse/grid.h"

void grid_fini(struct grid *grid)
{
	table_fini(&grid->table);
	table_fit_fini(&grid->fit);
	vec_fini(&grid->roles);
}

void grid_begin(struct grid *grid, const struct table_column *columns, size_t count)
{
	struct table *table = &grid->table;

	table->columns = columns;
	table->column_count = count;
	strbuf_reset(&table->text);
	table->cells.len = table->notes.len = 0;
	table->failed = false;
	grid->roles.len = 0;
}

void grid_reset(struct grid *grid)
{
	table_fit_fini(&grid->fit);
}

void grid_role(struct grid *grid, size_t column, enum screen_role role)
{
	size_t columns = grid->table.column_count;
	size_t cell = (grid->table.cells.len - 1) / columns * columns + column;

	while (grid->roles.len <= cell)
		if (!vec_push(&grid->roles))
			return; /* it is plain then */
	grid->roles.items[cell] = role;
}

void grid_heat(struct grid *grid, const struct layout *layout, uint32_t event,
	       const struct view_count *counts, const uint64_t *period_total)
{
	for (size_t i = 0; counts && i < layout->places.len; i++) {
		const struct layout_place *place = &layout->places.items[i];

		if (place->figure && place->figure->unit == FIGURE_SHARE && place->event == event)
			grid_role(grid, i,
				  screen_heat(
					  place->figure->of(&counts[event], period_total[event])));
	}
}

int grid_fit(struct grid *grid, int width, struct err *err)
{
	/* What has no room in a narrow terminal may have it in a wide one. */
	if (width != grid->width)
		grid_reset(grid);
	grid->width = width;
	return table_fit(&grid->fit, &grid->table, width, err);
}

/* Parts of a table's line become parts of the screen's, each with its column's role. */
struct part_writer {
	struct screen_line *line;
	const enum screen_role *roles; /* by column; NULL: those of headings */
	size_t count;
};

static void write_part(void *ctx, size_t column, size_t blanks, const char *text, size_t len)
{
	const struct part_writer *writer = ctx;
	enum screen_role role = !writer->roles		 ? SCREEN_HEADING
				: column < writer->count ? writer->roles[column]
							 : SCREEN_PLAIN;

	screen_line_blanks(writer->line, SCREEN_PLAIN, blanks);
	strbuf_add(screen_line_part(writer->line, role), text, len);
}

static bool has_groups(const struct grid *grid)
{
	for (size_t c = 0; c < grid->fit.count; c++)
		if (grid->fit.columns[c].as->group)
			return true;
	return false;
}

unsigned int grid_headings(const struct grid *grid)
{
	return has_groups(grid) ? 2 : 1;
}

void grid_heading(const struct grid *grid, unsigned int index, struct screen_line *line)
{
	struct part_writer parts = {.line = line};
	const struct table_writer writer = {write_part, &parts};

	if (index == 0 && table_put_groups(&grid->fit, &writer))
		return;
	table_put_headings(&grid->fit, &writer);
}

void grid_row(const struct grid *grid, size_t row, struct screen_line *line)
{
	static const enum screen_role none;
	size_t columns = grid->table.column_count, at = row * columns;
	struct part_writer parts = {line, &none, 0};
	const struct table_writer writer = {write_part, &parts};

	if ((row + 1) * columns > grid->table.cells.len)
		return;
	if (at < grid->roles.len) {
		parts.roles = grid->roles.items + at;
		parts.count = grid->roles.len - at;
	}
	table_put_row(&grid->fit, &grid->table, row, &writer);
}
