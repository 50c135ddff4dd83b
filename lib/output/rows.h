#ifndef PYPERF_OUTPUT_ROWS_H
#define PYPERF_OUTPUT_ROWS_H

#include "output/figure.h"
#include "output/layout.h"
#include "output/names.h"
#include "output/output.h"
#include "output/table.h"

#include <stdbool.h>

/* Which rows and which labels a report shows: what its formats have in common. */

/* A column that says what a row is. */
struct label {
	const char *key;     /* in CSV and JSON */
	const char *heading; /* in text */
	bool in_text, in_csv;
	enum table_cut cut;
	unsigned int gap;
	void (*add)(const struct report *report, const struct names *names,
		    const struct view_row *row, struct strbuf *out);
};
/* The labels of a function's row, ended by a row without key; a group's row has its keys. */
extern const struct label row_labels[];
/* Of a line's row in CSV. */
extern const struct label line_labels[];

/* The columns of a report as a table: figures, metrics, and what its rows are called. */
int rows_layout(struct layout *layout, const struct report *report, const struct names *names,
		struct err *err);

/* The row's value of the group's key number `key`. */
void rows_add_group(const struct report *report, const struct names *names,
		    const struct view_row *row, size_t key, struct strbuf *out);

/* True where kind and share let the row through. */
bool rows_pass(const struct report *report, const struct view_row *row, bool *below_limit);
/* False for events that carry no samples of their own: side-band, Python frames. */
bool rows_event_shown(const struct report *report, uint32_t event);

#endif
