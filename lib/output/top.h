#ifndef PYPERF_OUTPUT_TOP_H
#define PYPERF_OUTPUT_TOP_H

#include "base/strbuf.h"
#include "base/vec.h"
#include "profile/live.h"
#include "record/holders.h"
#include "record/threads.h"

#include <stdbool.h>
#include <stdio.h>

/* What runs now, as `pyperf top` shows it: as text, as JSON, and as the lines of a screen. */

struct top {
	struct live *live;
	const struct holders *holders;
	const struct thread_table *threads;
	const struct recorder_result *result; /* so far */
	const char *title;		      /* "python3 train.py", "process 12 (python3)" */
	const char *engine;		      /* for Python frames, as --python has it */
	uint64_t began, now;
	uint64_t frequency; /* that was asked for; 0: every so many events */
	bool lines_known;   /* the engine tells Python lines */
	bool ended;
};

enum top_rows { TOP_FUNCTIONS, TOP_LINES, TOP_THREADS };
/* Metrics are TOP_BY_METRICS + their number among the columns. */
enum top_sort { TOP_BY_SELF, TOP_BY_TOTAL, TOP_BY_NAME, TOP_BY_METRICS };

struct top_choice {
	enum top_rows rows;
	unsigned int sort;  /* enum top_sort; of threads: by CPU, by GIL, by name */
	uint32_t event;	    /* that ranks */
	bool all;	    /* since the beginning, not the window */
	const char *filter; /* part of a function's or file's or thread's name; NULL: all */
	size_t most;	    /* rows; 0: all */
	int width;	    /* columns; 0: no limit */
};

/* What the rows can be ordered by: the columns of the table, from left to right. */
struct top_order {
	unsigned int sort;
	uint32_t event;
	char *name; /* "self", "cache-misses total", "IPC" */
};
struct top_orders {
	VEC_OF(struct top_order)
	size_t chosen; /* index of the choice's */
};
int top_orders_find(struct top_orders *orders, const struct top *top,
		    const struct top_choice *choice, struct err *err);
void top_orders_fini(struct top_orders *orders);

/* The lines of a table, and what each row is. All zero is empty. */
struct top_row {
	size_t start;		 /* of its line in the text */
	uint32_t function, line; /* of live_profile(); UINT32_MAX, 0: none */
	double share;		 /* of the whole: how hot it is */
};
struct top_table {
	char *text; /* lines end with NUL */
	size_t len;
	size_t headings[2]; /* starts of lines */
	unsigned int heading_count;
	struct {
		VEC_OF(struct top_row)
	} rows;
};
int top_table_make(struct top_table *table, const struct top *top, const struct top_choice *choice,
		   struct err *err);
void top_table_fini(struct top_table *table);

/* "cpu-clock at 99 Hz: 1,234 samples in the last 5.0 s, 0 lost" */
void top_head_samples(const struct top *top, const struct top_choice *choice, struct strbuf *out);
/* "CPU 198%   GIL 97%   threads 3 active of 12" */
void top_head_threads(const struct top *top, const struct top_choice *choice, struct strbuf *out);
/* What is measured and what the figures mean, for help. */
extern const char top_legend[];

int output_top_text(FILE *out, const struct top *top, const struct top_choice *choice,
		    struct err *err);
/* One object on one line: functions, lines, threads. `most` rows of each; 0: all. */
int output_top_json(FILE *out, const struct top *top, size_t most, struct err *err);

#endif
