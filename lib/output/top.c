#include "output/top.h"

#include "base/text.h"
#include "output/layout.h"
#include "output/names.h"
#include "output/rows.h"
#include "perfmap/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_SHARE 0.0005 /* rows below it would read as 0.0% */

const char top_legend[] =
	"self     share of the samples in which the function is innermost\n"
	"total    share in which it is anywhere on the stack\n"
	"CPU      time that threads were on a CPU: 100% is one CPU, all the time\n"
	"GIL      share of time in which some thread holds the interpreter lock,\n"
	"         whether or not it runs then; looked at a hundred times a second\n"
	"active   threads that were on a CPU for 1% of the time at least\n";

/* A table that is being made. */
struct making {
	struct top_table *table;
	const struct top *top;
	const struct top_choice *choice;
	struct profile *profile;
	struct names *names;
	const struct metric_columns *metrics;
	struct layout layout;
	struct table text;
};

void top_table_fini(struct top_table *table)
{
	free(table->text);
	vec_fini(&table->rows);
	*table = (struct top_table){0};
}

static bool has(const char *text, const char *part)
{
	return strcasestr(text, part);
}

static bool passes(const struct making *making, uint32_t function)
{
	const struct profile_function *f = profile_function(making->profile, function);
	const char *part = making->choice->filter;

	return !part || !*part || has(profile_text(making->profile, f->qualname), part) ||
	       has(profile_text(making->profile, f->name), part) ||
	       has(profile_text(making->profile, f->file), part);
}

/* Rows of a view in the order of the choice. */
struct ranked {
	const struct view_row *row;
	const struct making *making;
	double self, total;
	double key; /* descending; of no meaning by name */
};

static int by_name(const struct ranked *a, const struct ranked *b)
{
	const struct profile *profile = a->making->profile;
	int order = strcmp(
		profile_text(profile, profile_function(profile, a->row->function)->name),
		profile_text(profile, profile_function(profile, b->row->function)->name));

	return order ? order : (a->row->line > b->row->line) - (a->row->line < b->row->line);
}

static int by_choice(const void *first, const void *second)
{
	const struct ranked *a = first, *b = second;

	if (a->making->choice->sort != TOP_BY_NAME) {
		if (a->key != b->key)
			return a->key < b->key ? 1 : -1;
		if (a->total != b->total)
			return a->total < b->total ? 1 : -1;
	}
	return by_name(a, b);
}

static double key_of(const struct making *making, const struct view *view, const struct ranked *r)
{
	const struct metric_columns *metrics = making->metrics;
	unsigned int sort = making->choice->sort;

	/* Events that are ranked by may lack a metric that others had. */
	if (sort >= TOP_BY_METRICS && sort - TOP_BY_METRICS < metrics->count)
		return metric_columns_rank(metrics, view, r->row,
					   metrics->chosen[sort - TOP_BY_METRICS]);
	return sort == TOP_BY_TOTAL ? r->total : r->self;
}

static struct ranked *rank(const struct making *making, const struct view *view, size_t *count)
{
	uint32_t event = making->choice->event;
	struct ranked *ranked = calloc(view->count + 1, sizeof(*ranked));

	*count = 0;
	for (size_t i = 0; ranked && i < view->count; i++) {
		const struct view_row *row = &view->rows[i];
		struct ranked r = {
			.row = row,
			.making = making,
			.self = figure_share(row->counts[event].self, view->period_total[event]),
			.total = figure_share(row->counts[event].total, view->period_total[event]),
		};

		if (r.total < LEAST_SHARE || !passes(making, row->function))
			continue;
		r.key = key_of(making, view, &r);
		ranked[(*count)++] = r;
	}
	if (ranked)
		qsort(ranked, *count, sizeof(*ranked), by_choice);
	if (making->choice->most && *count > making->choice->most)
		*count = making->choice->most;
	return ranked;
}

/* "train.py:42  total += a[i]": a line of source names itself. */
static void put_line(const struct making *making, const struct view_row *row)
{
	const struct profile_function *f = profile_function(making->profile, row->function);
	const struct source *source = profile_source(making->profile, f->file);
	struct strbuf *cell = table_cell((struct table *)&making->text);
	size_t len = 0;
	const char *text = source && row->line ? source_line(source, row->line, &len) : NULL;

	names_add_file(making->names, f->file, cell);
	if (row->line)
		strbuf_printf(cell, ":%u", row->line);
	cell = table_cell((struct table *)&making->text);
	while (text && len && strchr(" \t\f", *text)) {
		text++;
		len--;
	}
	if (text)
		names_add_source(cell, text, len);
}

static int add_labels(struct making *making, struct err *err)
{
	static const struct table_column function[] = {
		{.heading = "function",
		 .left = true,
		 .cut = TABLE_CUT_MIDDLE,
		 .gap = 3,
		 .want = LAYOUT_NAME_WANTED},
		{.heading = "", .left = true, .cut = TABLE_CUT_FRONT, .gap = 2},
	};
	static const struct table_column line[] = {
		{.heading = "function", .left = true, .cut = TABLE_CUT_MIDDLE, .gap = 3},
		{.heading = "line", .left = true, .cut = TABLE_CUT_FRONT, .gap = 2},
		{.heading = "", .left = true, .cut = TABLE_CUT_MIDDLE, .gap = 2},
	};
	bool lines = making->choice->rows == TOP_LINES;
	const struct table_column *columns = lines ? line : function;
	int ret = 0;

	for (size_t i = 0; i < (lines ? 3 : 2) && !ret; i++)
		ret = layout_add(&making->layout, columns[i], err);
	return ret;
}

static int add_row(struct making *making, uint32_t function, uint32_t line, double share,
		   struct err *err)
{
	struct top_row *row = vec_push(&making->table->rows);

	if (!row)
		return err_nomem(err);
	*row = (struct top_row){.function = function, .line = line, .share = share};
	return 0;
}

static int put_view(struct making *making, const struct view *view, struct err *err)
{
	size_t count;
	struct ranked *ranked = rank(making, view, &count);
	int ret = ranked ? 0 : err_nomem(err);

	for (size_t i = 0; i < count && !ret; i++) {
		const struct view_row *row = ranked[i].row;

		layout_row(&making->layout, &making->text, view, row);
		names_add_function(making->names, row->function, table_cell(&making->text));
		if (making->choice->rows == TOP_LINES)
			put_line(making, row);
		else
			names_add_place(making->names, row->function, table_cell(&making->text));
		ret = add_row(making, row->function, row->line, ranked[i].self, err);
	}
	free(ranked);
	return ret;
}

/* What table_print() writes, cut into lines. */
static int cut_lines(struct top_table *table, struct err *err)
{
	size_t lines = 0, row = 0, total = 0;

	for (size_t i = 0; i < table->len; i++)
		total += table->text[i] == '\n';
	table->heading_count = (unsigned int)(total - table->rows.len);
	if (table->heading_count > 2)
		return err_set(err, ERR_FAILED, "a table has lines that are no rows");
	for (size_t i = 0, start = 0; i < table->len; i++) {
		if (table->text[i] != '\n')
			continue;
		table->text[i] = '\0';
		if (lines < table->heading_count)
			table->headings[lines] = start;
		else
			table->rows.items[row++].start = start;
		start = i + 1;
		lines++;
	}
	return 0;
}

static int print(struct making *making, struct err *err)
{
	struct top_table *table = making->table;
	FILE *out = open_memstream(&table->text, &table->len);
	int ret;

	if (!out)
		return err_nomem(err);
	ret = table_print(out, &making->text, making->choice->width, err);
	if (fclose(out) != 0 && !ret)
		ret = err_nomem(err);
	return ret ? ret : cut_lines(table, err);
}

static int make_code(struct making *making, struct err *err)
{
	bool lines = making->choice->rows == TOP_LINES;
	enum view_sort sort = making->choice->sort == TOP_BY_TOTAL ? VIEW_BY_TOTAL : VIEW_BY_SELF;
	struct layout_choice choice = {
		.ranked = making->choice->event,
		.totals = true,
		.samples = true,
		.split = !profile_summary(making->profile)->folded,
	};
	struct metric_columns metrics;
	struct view *view = NULL;
	int ret = names_new(&making->names, making->profile, err);

	if (!ret)
		ret = metric_columns_init(&metrics, making->profile, choice.ranked, NULL, err);
	making->metrics = choice.metrics = &metrics;
	if (!ret)
		ret = layout_init(&making->layout, making->profile, making->names, &choice, err);
	if (!ret)
		ret = add_labels(making, err);
	if (!ret && lines)
		ret = view_lines(&view, making->profile, NULL, UINT32_MAX, choice.ranked, err);
	else if (!ret)
		ret = view_functions(&view, making->profile, NULL, sort, choice.ranked, err);
	table_init(&making->text, making->layout.columns.items, making->layout.columns.len);
	if (!ret)
		ret = put_view(making, view, err);
	if (!ret)
		ret = print(making, err);
	table_fini(&making->text);
	view_free(view);
	layout_fini(&making->layout);
	names_free(making->names);
	return ret;
}

/* Threads. */

static void put_percent(struct strbuf *cell, double share)
{
	if (share >= LEAST_SHARE)
		strbuf_printf(cell, "%.1f%%", 100 * share);
}

static const char *state_words(char state)
{
	static const struct {
		char state;
		const char *words;
	} states[] = {
		{'R', "runs"},	  {'S', "sleeps"}, {'D', "waits for a device"},
		{'T', "stopped"}, {'t', "traced"}, {'I', "idle"},
		{'Z', "ended"},
	};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (states[i].state == state)
			return states[i].words;
	return "?";
}

struct ranked_thread {
	const struct thread_row *row;
	double gil;
	unsigned int sort;
};

static int by_thread(const void *first, const void *second)
{
	const struct ranked_thread *a = first, *b = second;
	double left = a->sort == TOP_BY_TOTAL ? a->gil : a->row->cpu;
	double right = a->sort == TOP_BY_TOTAL ? b->gil : b->row->cpu;
	int names = strcmp(a->row->comm, b->row->comm);

	if (a->sort == TOP_BY_NAME && names)
		return names;
	if (a->sort != TOP_BY_NAME && left != right)
		return left < right ? 1 : -1;
	return (a->row->tid > b->row->tid) - (a->row->tid < b->row->tid);
}

static const struct table_column thread_columns[] = {
	{.heading = "CPU", .gap = 2},
	{.heading = "GIL", .gap = 2},
	{.heading = "tid", .gap = 3},
	{.heading = "thread", .left = true, .gap = 2, .cut = TABLE_CUT_MIDDLE},
	{.heading = "state", .left = true, .gap = 2},
	{.heading = "last seen in", .left = true, .gap = 2, .cut = TABLE_CUT_MIDDLE},
};

static void put_thread(struct making *making, const struct ranked_thread *ranked, uint32_t function,
		       uint32_t line)
{
	const struct thread_row *row = ranked->row;
	struct strbuf *cell = table_cell(&making->text);

	put_percent(cell, row->cpu);
	put_percent(table_cell(&making->text), ranked->gil);
	strbuf_printf(table_cell(&making->text), "%d", (int)row->tid);
	names_add_text(table_cell(&making->text), row->comm);
	strbuf_str(table_cell(&making->text), state_words(row->state));
	cell = table_cell(&making->text);
	if (function == UINT32_MAX)
		return;
	names_add_function(making->names, function, cell);
	strbuf_str(cell, "  ");
	names_add_file(making->names, profile_function(making->profile, function)->file, cell);
	if (line)
		strbuf_printf(cell, ":%u", line);
}

static double gil_of(const struct top *top, const struct thread_row *row, bool all)
{
	struct holder_share share = holders_thread(top->holders, row->pid, row->tid);

	return all ? share.all : share.recent;
}

static int put_threads(struct making *making, struct err *err)
{
	const struct top *top = making->top;
	const struct top_choice *choice = making->choice;
	struct ranked_thread *ranked = calloc(top->threads->rows.len + 1, sizeof(*ranked));
	size_t count = 0;
	int ret = ranked ? 0 : err_nomem(err);

	for (size_t i = 0; !ret && i < top->threads->rows.len; i++) {
		const struct thread_row *row = &top->threads->rows.items[i];

		if (!choice->filter || has(row->comm, choice->filter))
			ranked[count++] = (struct ranked_thread){row, gil_of(top, row, choice->all),
								 choice->sort};
	}
	if (ranked)
		qsort(ranked, count, sizeof(*ranked), by_thread);
	for (size_t i = 0; !ret && i < count && !(choice->most && i >= choice->most); i++) {
		uint32_t line;
		uint32_t function = live_function_of(top->live, (uint32_t)ranked[i].row->tid,
						     &line);

		put_thread(making, &ranked[i], function, line);
		ret = add_row(making, function, line, ranked[i].row->cpu, err);
	}
	free(ranked);
	return ret;
}

static int make_threads(struct making *making, struct err *err)
{
	int ret = names_new(&making->names, making->profile, err);

	table_init(&making->text, thread_columns,
		   sizeof(thread_columns) / sizeof(thread_columns[0]));
	if (!ret)
		ret = put_threads(making, err);
	if (!ret)
		ret = print(making, err);
	table_fini(&making->text);
	names_free(making->names);
	return ret;
}

int top_table_make(struct top_table *table, const struct top *top, const struct top_choice *choice,
		   struct err *err)
{
	struct making making = {.table = table,
				.top = top,
				.choice = choice,
				.profile = live_profile(top->live, choice->all)};
	int ret;

	top_table_fini(table);
	ret = choice->rows == TOP_THREADS ? make_threads(&making, err) : make_code(&making, err);
	if (ret)
		top_table_fini(table);
	return ret;
}

/* Orders. */

static int add_order(struct top_orders *orders, const struct top_choice *choice, unsigned int sort,
		     uint32_t event, const char *of, const char *name, struct err *err)
{
	struct top_order *order = vec_push(orders);
	struct strbuf text = {0};

	if (!order)
		return err_nomem(err);
	text_escape(&text, of, strlen(of));
	strbuf_printf(&text, "%s%s", *of ? " " : "", name);
	*order = (struct top_order){sort, event, strbuf_detach(&text, NULL)};
	if (sort == choice->sort && event == choice->event)
		orders->chosen = orders->len - 1;
	return order->name ? 0 : err_nomem(err);
}

static int find_code_orders(struct top_orders *orders, const struct profile *profile,
			    const struct top_choice *choice, struct err *err)
{
	uint32_t events = (uint32_t)profile_event_count(profile), sampled = 0;
	struct metric_columns metrics;
	int ret = metric_columns_init(&metrics, profile, choice->event, NULL, err);

	for (uint32_t e = 0; e < events; e++)
		sampled += profile_event(profile, e)->sampled;
	for (uint32_t e = 0; e < events && !ret; e++) {
		const char *of = sampled > 1 ? profile_event(profile, e)->name : "";

		if (!profile_event(profile, e)->sampled)
			continue;
		ret = add_order(orders, choice, TOP_BY_SELF, e, of, "self", err);
		if (!ret)
			ret = add_order(orders, choice, TOP_BY_TOTAL, e, of, "total", err);
	}
	for (unsigned int i = 0; !ret && i < metrics.count; i++)
		ret = add_order(orders, choice, TOP_BY_METRICS + i, choice->event, "",
				metrics.measures.plans[metrics.chosen[i]].metric->heading, err);
	return ret ? ret : add_order(orders, choice, TOP_BY_NAME, choice->event, "", "name", err);
}

int top_orders_find(struct top_orders *orders, const struct top *top,
		    const struct top_choice *choice, struct err *err)
{
	static const char *const of_threads[] = {
		[TOP_BY_SELF] = "CPU", [TOP_BY_TOTAL] = "GIL", [TOP_BY_NAME] = "name"};
	int ret = 0;

	*orders = (struct top_orders){0};
	if (choice->rows != TOP_THREADS)
		ret = find_code_orders(orders, live_profile(top->live, choice->all), choice, err);
	for (unsigned int i = 0; choice->rows == TOP_THREADS && i <= TOP_BY_NAME && !ret; i++)
		ret = add_order(orders, choice, i, choice->event, "", of_threads[i], err);
	if (ret)
		top_orders_fini(orders);
	return ret;
}

void top_orders_fini(struct top_orders *orders)
{
	for (size_t i = 0; i < orders->len; i++)
		free(orders->items[i].name);
	vec_fini(orders);
}

/* The head. */

static void add_gil(const struct top *top, bool all, struct strbuf *out)
{
	size_t many;
	pid_t pid = holders_busiest(top->holders, &many);
	struct holder_share share = holders_process(top->holders, pid);

	if (share.lockless)
		strbuf_str(out, "   no GIL");
	else if (share.known)
		strbuf_printf(out, "   GIL %.0f%%", 100 * (all ? share.all : share.recent));
	if (share.known && many > 1)
		strbuf_printf(out, " (of process %d, the busiest of %zu)", (int)pid, many);
}

void top_head_samples(const struct top *top, const struct top_choice *choice, struct strbuf *out)
{
	const struct profile_event *event = profile_event(live_profile(top->live, choice->all),
							  choice->event);
	double seconds = (double)(top->now - live_since(top->live, choice->all)) / 1e9;
	char samples[32], lost[32];

	text_count(samples, sizeof(samples), live_samples(top->live, choice->all));
	text_count(lost, sizeof(lost), top->result->lost);
	text_escape(out, event->name, strlen(event->name));
	if (top->frequency)
		strbuf_printf(out, " at %" PRIu64 " Hz", top->frequency);
	strbuf_printf(out, ": %s samples in %s%.1f s, %s lost", samples,
		      choice->all ? "" : "the last ", seconds, lost);
}

void top_head_threads(const struct top *top, const struct top_choice *choice, struct strbuf *out)
{
	strbuf_printf(out, "CPU %.0f%%", 100 * top->threads->cpu);
	add_gil(top, choice->all, out);
	strbuf_printf(out, "   threads %zu active of %zu%s", top->threads->active,
		      top->threads->rows.len, top->threads->cut ? "+" : "");
	if (top->threads->processes > 1)
		strbuf_printf(out, "   processes %zu", top->threads->processes);
}

int output_top_text(FILE *out, const struct top *top, const struct top_choice *choice,
		    struct err *err)
{
	struct top_table table = {0};
	struct strbuf head = {0};
	int ret = top_table_make(&table, top, choice, err);

	text_escape(&head, top->title, strlen(top->title));
	strbuf_printf(&head, "   %.1f s%s\n", (double)(top->now - top->began) / 1e9,
		      top->ended ? ", ended" : "");
	top_head_samples(top, choice, &head);
	strbuf_char(&head, '\n');
	top_head_threads(top, choice, &head);
	fprintf(out, "%s\n\n", strbuf_text(&head));
	for (unsigned int i = 0; !ret && i < table.heading_count; i++)
		fprintf(out, "%s\n", table.text + table.headings[i]);
	for (size_t i = 0; !ret && i < table.rows.len; i++)
		fprintf(out, "%s\n", table.text + table.rows.items[i].start);
	if (!ret && !table.rows.len)
		fprintf(out, "no samples: nothing that is looked at used a CPU\n");
	fputc('\n', out);
	strbuf_fini(&head);
	top_table_fini(&table);
	return ret;
}
