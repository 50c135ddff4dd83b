#include "output/page.h"

#include "output/slices.h"
#include "output/summary.h"
#include "profile/match.h"
#include "profile/measure.h"
#include "profile/origin.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * The page's data: one JSON object whose tables are arrays by column, since these compress well and
 * are read fast. page/README.md says what each means. Only what passes the filter is in it, and
 * functions, files, threads and events are numbered anew.
 */
#define STACKS_MAX 300000
#define ROWS_MAX 1000000
#define PHASES_MAX 10000
#define NONE UINT32_MAX

/* Old numbers to new ones, in order of first use. */
struct renumber {
	uint32_t *to;
	struct {
		VEC_OF(uint32_t)
	} from;
};

struct data {
	const struct page *page;
	struct names *names;
	struct view_matcher *matcher;
	struct page_stacks stacks;
	struct renumber functions, files, threads, events;
	struct slices *slices;
	struct slices *counted; /* of events that were counted along: one slice */
};

static int renumber_init(struct renumber *r, size_t count)
{
	r->to = malloc((count + 1) * sizeof(*r->to));
	if (!r->to)
		return -1;
	memset(r->to, 0xff, (count + 1) * sizeof(*r->to));
	return 0;
}

static void renumber_fini(struct renumber *r)
{
	free(r->to);
	vec_fini(&r->from);
}

static int renumber(struct renumber *r, uint32_t old)
{
	uint32_t *place;

	if (r->to[old] != NONE)
		return 0;
	place = vec_push(&r->from);
	if (!place)
		return -1;
	*place = old;
	r->to[old] = (uint32_t)r->from.len - 1;
	return 0;
}

static int add_row(struct data *data, struct slices *slices, uint64_t time, uint32_t thread,
		   struct slice_row row, struct err *err)
{
	row.event = data->events.to[row.event];
	row.stack = data->stacks.of_stack[row.stack];
	if (row.event == NONE)
		return 0;
	if (renumber(&data->threads, thread))
		return err_nomem(err);
	row.thread = data->threads.to[thread];
	return slices_add(slices, time, &row, err);
}

/* Cells of events that were sampled themselves, or of those that were counted along at others'
 * samples: sums without a time. */
static int add_cells(struct data *data, struct slices *slices, bool counted, struct err *err)
{
	const struct profile *profile = data->page->profile;
	int rc = 0;

	for (size_t i = 0; i < profile_cell_count(profile) && !rc; i++) {
		const struct profile_cell *cell = profile_cell(profile, i);
		const struct profile_event *event = profile_event(profile, cell->event);
		struct slice_row row = {.event = cell->event,
					.stack = cell->stack,
					.samples = cell->samples,
					.period = cell->period};

		if (profile_event_counted(event, cell->event) == counted &&
		    view_matches(data->matcher, cell->thread, cell->stack))
			rc = add_row(data, slices, 0, cell->thread, row, err);
	}
	return rc;
}

static int add_samples(struct data *data, struct err *err)
{
	const struct page *page = data->page;
	const struct sample *sample;
	struct samples_walk walk;
	int rc = samples_walk_init(&walk, page->samples, page->profile, page->filter,
				   SAMPLES_ALL_EVENTS, err);

	while (!rc && (sample = samples_walk_next(&walk))) {
		struct slice_row row = {.event = sample->event,
					.stack = sample->stack,
					.samples = 1,
					.period = sample->period};

		rc = add_row(data, data->slices, sample->time, sample->thread, row, err);
	}
	samples_walk_fini(&walk);
	return rc;
}

static int collect_rows(struct data *data, struct err *err)
{
	const struct profile_summary *summary = profile_summary(data->page->profile);
	int rc;

	data->slices = slices_new(summary->first_time, summary->last_time, ROWS_MAX);
	data->counted = slices_new(0, 0, SIZE_MAX);
	if (!data->slices || !data->counted)
		return err_nomem(err);
	/* Other tools' profiles may have sums alone. */
	if (slices_count(data->slices) > 1)
		rc = add_samples(data, err);
	else
		rc = add_cells(data, data->slices, false, err);
	return rc ? rc : add_cells(data, data->counted, true, err);
}

static int collect(struct data *data, struct err *err)
{
	const struct page *page = data->page;
	const struct profile *profile = page->profile;
	size_t strings = 0;
	int rc;

	for (uint32_t i = 0; i < profile_function_count(profile); i++)
		if (profile_function(profile, i)->file > strings)
			strings = profile_function(profile, i)->file;
	rc = names_new(&data->names, profile, err);
	if (!rc)
		rc = view_matcher_new(&data->matcher, profile, page->filter, err);
	if (!rc)
		rc = page_stacks_init(&data->stacks, profile, data->matcher, STACKS_MAX, err);
	if (rc)
		return rc;
	if (renumber_init(&data->functions, profile_function_count(profile)) ||
	    renumber_init(&data->files, strings + 1) ||
	    renumber_init(&data->threads, profile_thread_count(profile)) ||
	    renumber_init(&data->events, profile_event_count(profile)))
		return err_nomem(err);
	for (uint32_t i = 0; i < profile_event_count(profile); i++)
		if (names_event_has_samples(data->names, i) && renumber(&data->events, i))
			return err_nomem(err);
	for (size_t i = 1; i < data->stacks.items.len; i++) {
		uint32_t function = data->stacks.items.items[i].function;

		if (renumber(&data->functions, function) ||
		    renumber(&data->files, profile_function(profile, function)->file))
			return err_nomem(err);
	}
	return collect_rows(data, err);
}

/* JSON */

void page_put_text(struct strbuf *out, const char *text, size_t len)
{
	strbuf_char(out, '"');
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"' || text[i] == '\\')
			strbuf_char(out, '\\');
		strbuf_char(out, text[i]);
	}
	strbuf_char(out, '"');
}

void page_put_raw_text(struct strbuf *out, const char *text)
{
	struct strbuf safe = {0};

	names_add_text(&safe, text ? text : "");
	page_put_text(out, strbuf_text(&safe), safe.len);
	if (strbuf_failed(&safe))
		out->failed = 1;
	strbuf_fini(&safe);
}

/* Millions of these are written. */
static void put_number(struct strbuf *out, int64_t number)
{
	char digits[24], *at = digits + sizeof(digits);
	uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;

	do
		*--at = (char)('0' + left % 10);
	while (left /= 10);
	if (number < 0)
		*--at = '-';
	strbuf_add(out, at, (size_t)(digits + sizeof(digits) - at));
}

static int64_t clamped(uint64_t count)
{
	return count > INT64_MAX ? INT64_MAX : (int64_t)count;
}

/* "key":[...] of what the expression says for i = first .. count - 1. */
#define PUT_COLUMN(out, key, first, count, expression)          \
	do {                                                    \
		strbuf_str(out, "\"" key "\":[");               \
		for (size_t i = (first); i < (count); i++) {    \
			if (i > (first))                        \
				strbuf_char(out, ',');          \
			put_number(out, (int64_t)(expression)); \
		}                                               \
		strbuf_str(out, "]");                           \
	} while (0)

/* A column of rows, or one number where it is the same in each. */
static void put_row_column(struct strbuf *out, const char *key, const struct slice_row *rows,
			   size_t count, int64_t (*of)(const struct slice_row *row))
{
	bool same = true;

	for (size_t i = 1; i < count && same; i++)
		same = of(&rows[i]) == of(&rows[0]);
	strbuf_printf(out, ",\n\"%s\":%s", key, same ? "" : "[");
	for (size_t i = 0; i < (same ? 1 : count); i++) {
		if (i)
			strbuf_char(out, ',');
		put_number(out, i < count ? of(&rows[i]) : 0);
	}
	if (!same)
		strbuf_char(out, ']');
}

static int64_t event_of(const struct slice_row *row)
{
	return row->event;
}

static int64_t thread_of(const struct slice_row *row)
{
	return row->thread;
}

static int64_t samples_of(const struct slice_row *row)
{
	return clamped(row->samples);
}

static int64_t period_of(const struct slice_row *row)
{
	return clamped(row->period);
}

static void put_head(struct strbuf *out, const struct data *data)
{
	const struct page *page = data->page;
	const struct profile_summary *s = profile_summary(page->profile);

	strbuf_str(out, "{\"format\":1,\n\"command\":");
	page_put_raw_text(out, s->command);
	strbuf_str(out, ",\"python\":");
	page_put_raw_text(out, s->python_version);
	strbuf_str(out, ",\"filter\":");
	page_put_raw_text(out, page->filter_text);
	strbuf_str(out, ",\"shown\":");
	page_put_raw_text(out, s->shown);
	strbuf_printf(out, ",\"reduced\":%g,\"folded\":%s",
		      page->reduced ? REDUCED_PERCENT / 100 : 0, s->folded ? "true" : "false");
	strbuf_printf(out,
		      ",\"version\":\"%s\",\n\"duration\":%" PRIu64 ",\"samples\":%" PRIu64
		      ",\"lost\":%" PRIu64 ",\"python_lines\":%" PRIu64 ",\"fewest\":%" PRIu64
		      ",\"cut_samples\":%" PRIu64 ",\n",
		      PYPERF_VERSION, s->last_time - s->first_time, s->samples, s->lost,
		      s->python_lines, data->stacks.fewest, data->stacks.cut_samples);
}

static int put_losses(struct strbuf *out, const struct page *page, struct err *err)
{
	char *text = NULL;
	size_t len = 0;
	FILE *file = open_memstream(&text, &len);

	if (!file)
		return err_nomem(err);
	summary_losses(file, page->profile, false);
	if (fclose(file)) {
		free(text);
		return err_nomem(err);
	}
	strbuf_str(out, "\"losses\":[");
	for (char *line = text, *end; *line; line = end) {
		end = strchrnul(line, '\n');
		if (line != text)
			strbuf_char(out, ',');
		page_put_text(out, line, (size_t)(end - line));
		end += *end == '\n';
	}
	strbuf_str(out, "],\n");
	free(text);
	return 0;
}

static void put_events(struct strbuf *out, const struct data *data)
{
	const struct profile *profile = data->page->profile;

	strbuf_str(out, "\"events\":[");
	for (size_t i = 0; i < data->events.from.len; i++) {
		uint32_t e = data->events.from.items[i];
		const struct profile_event *event = profile_event(profile, e);

		strbuf_str(out, i ? ",{\"name\":" : "{\"name\":");
		page_put_raw_text(out, names_event(data->names, e));
		strbuf_printf(out, ",\"frequency\":%.0f,\"every\":%" PRIu64 ",\"lost\":%" PRIu64,
			      event->frequency, event->period, event->lost);
		if (profile_event_counted(event, e))
			strbuf_printf(out, ",\"leader\":%" PRIu32,
				      data->events.to[event->group - 1]);
		strbuf_char(out, '}');
	}
	strbuf_printf(out, "],\n\"event\":%" PRIu32 ",\n",
		      data->page->event < profile_event_count(profile) &&
				      data->events.to[data->page->event] != NONE
			      ? data->events.to[data->page->event]
			      : 0);
}

/* Losses and throttling make what an event counted more than its samples say. */
static double scale_of(const struct profile_event *event)
{
	return event->period_total ? event->estimated_total / (double)event->period_total : 1;
}

static void put_metric(struct strbuf *out, const struct data *data, const struct metric_plan *plan)
{
	const struct profile *profile = data->page->profile;
	const struct metric *metric = plan->metric;

	strbuf_printf(out,
		      "{\"key\":\"%s\",\"heading\":\"%s\",\"summary\":\"%s\",\"unit\":\"%s\","
		      "\"decimals\":%u,\"scale\":%g,\"shown\":%s,\"joint\":%s,\"pairs\":[",
		      metric->key, metric->heading, metric->summary, metric->unit, metric->decimals,
		      metric->scale, metric->shown ? "true" : "false",
		      plan->joint ? "true" : "false");
	for (size_t i = 0; i < plan->count; i++) {
		const struct profile_event *above = profile_event(profile, plan->pairs[i].above);
		const struct profile_event *below = profile_event(profile, plan->pairs[i].below);

		strbuf_printf(out, "%s[%" PRIu32 ",%" PRIu32 ",%.6g,%.6g]", i ? "," : "",
			      data->events.to[plan->pairs[i].above],
			      data->events.to[plan->pairs[i].below],
			      plan->joint ? 1 : scale_of(above), plan->joint ? 1 : scale_of(below));
	}
	strbuf_str(out, "]}");
}

static bool has_events(const struct data *data, const struct metric_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (data->events.to[plan->pairs[i].above] == NONE ||
		    data->events.to[plan->pairs[i].below] == NONE)
			return false;
	return true;
}

static int put_metrics(struct strbuf *out, const struct data *data, struct err *err)
{
	struct measures measures;
	bool first = true;
	int rc = measures_init(&measures, data->page->profile, data->page->event, err);

	if (rc)
		return rc;
	strbuf_str(out, "\"metrics\":[");
	for (size_t i = 0; i < measures.count; i++) {
		const struct metric_plan *plan = &measures.plans[i];

		/* The kernel's share stands beside each row already. */
		if (plan->metric->above == ROLE_KERNEL || !has_events(data, plan))
			continue;
		if (!first)
			strbuf_str(out, ",\n");
		first = false;
		put_metric(out, data, plan);
	}
	strbuf_str(out, "],\n");
	return 0;
}

static void put_phases(struct strbuf *out, const struct data *data)
{
	const struct profile *profile = data->page->profile;
	uint64_t start = profile_summary(profile)->first_time;
	size_t count = profile_phase_count(profile);

	strbuf_str(out, "\"phases\":[");
	for (size_t i = 0; i < count && i < PHASES_MAX; i++) {
		const struct profile_phase *phase = profile_phase(profile, i);

		strbuf_str(out, i ? ",[" : "[");
		page_put_raw_text(out, profile_text(profile, phase->name));
		strbuf_printf(out, ",%" PRId64 ",%" PRId64 "]", (int64_t)(phase->begin - start),
			      (int64_t)(phase->end - start));
	}
	strbuf_str(out, "],\n");
}

static void put_files(struct strbuf *out, const struct data *data)
{
	struct strbuf text = {0};

	strbuf_str(out, "\"files\":[");
	for (size_t i = 0; i < data->files.from.len; i++) {
		strbuf_str(out, i ? ",\n[" : "[");
		page_put_raw_text(out,
				  profile_text(data->page->profile, data->files.from.items[i]));
		strbuf_char(out, ',');
		strbuf_reset(&text);
		names_add_file(data->names, data->files.from.items[i], &text);
		page_put_text(out, strbuf_text(&text), text.len);
		strbuf_char(out, ']');
	}
	strbuf_str(out, "],\n");
	if (strbuf_failed(&text))
		out->failed = 1;
	strbuf_fini(&text);
}

static void put_functions(struct strbuf *out, const struct data *data)
{
	const struct profile *profile = data->page->profile;
	const uint32_t *from = data->functions.from.items;
	size_t count = data->functions.from.len;
	struct strbuf text = {0};

	strbuf_str(out, "\"functions\":{\"name\":[");
	for (size_t i = 0; i < count; i++) {
		if (i)
			strbuf_char(out, ',');
		strbuf_reset(&text);
		names_add_function(data->names, from[i], &text);
		page_put_text(out, strbuf_text(&text), text.len);
	}
	strbuf_str(out, "],\n");
	if (strbuf_failed(&text))
		out->failed = 1;
	strbuf_fini(&text);
	PUT_COLUMN(out, "file", 0, count, data->files.to[profile_function(profile, from[i])->file]);
	strbuf_str(out, ",\n");
	PUT_COLUMN(out, "line", 0, count, profile_function(profile, from[i])->line);
	strbuf_str(out, ",\n");
	PUT_COLUMN(out, "kind", 0, count, profile_function(profile, from[i])->kind);
	strbuf_str(out, ",\n");
	PUT_COLUMN(out, "origin", 0, count, code_origin(profile, from[i]));
	strbuf_str(out, "},\n");
}

static void put_threads(struct strbuf *out, const struct data *data)
{
	const struct profile *profile = data->page->profile;

	strbuf_str(out, "\"threads\":[");
	for (size_t i = 0; i < data->threads.from.len; i++) {
		const struct profile_thread *t = profile_thread(profile,
								data->threads.from.items[i]);

		strbuf_printf(out, "%s[%" PRIu32 ",%" PRIu32 ",", i ? ",\n" : "", t->pid, t->tid);
		page_put_raw_text(out, profile_text(profile, t->comm));
		strbuf_char(out, ']');
	}
	strbuf_str(out, "],\n");
}

static void put_stacks(struct strbuf *out, const struct data *data)
{
	const struct page_stack *items = data->stacks.items.items;
	size_t count = data->stacks.items.len;

	strbuf_str(out, "\"stacks\":{");
	PUT_COLUMN(out, "up", 1, count, i - items[i].parent);
	strbuf_str(out, ",\n");
	PUT_COLUMN(out, "function", 1, count, data->functions.to[items[i].function]);
	strbuf_str(out, ",\n");
	PUT_COLUMN(out, "line", 1, count, items[i].line);
	if (profile_summary(data->page->profile)->shown) {
		strbuf_str(out, ",\n");
		PUT_COLUMN(out, "kind", 1, count, items[i].kind);
	}
	strbuf_str(out, "},\n");
}

static void put_rows(struct strbuf *out, const struct data *data)
{
	size_t count;
	const struct slice_row *rows = slices_sorted(data->slices, &count);

	strbuf_printf(out, "\"slices\":{\"width\":%" PRIu64 ",\"count\":%" PRIu32 "},\n",
		      slices_width(data->slices), slices_count(data->slices));
	strbuf_str(out, "\"rows\":{");
	PUT_COLUMN(out, "slice", 0, count, rows[i].slice - (i ? rows[i - 1].slice : 0));
	strbuf_str(out, ",\n");
	PUT_COLUMN(out, "stack", 0, count,
		   (int64_t)rows[i].stack - (i ? (int64_t)rows[i - 1].stack : 0));
	put_row_column(out, "event", rows, count, event_of);
	put_row_column(out, "thread", rows, count, thread_of);
	put_row_column(out, "samples", rows, count, samples_of);
	put_row_column(out, "period", rows, count, period_of);
	strbuf_str(out, "},\n");
}

static void put_counted(struct strbuf *out, const struct data *data)
{
	size_t count;
	const struct slice_row *rows = slices_sorted(data->counted, &count);

	strbuf_str(out, "\"counted\":{");
	PUT_COLUMN(out, "stack", 0, count,
		   (int64_t)rows[i].stack - (i ? (int64_t)rows[i - 1].stack : 0));
	put_row_column(out, "event", rows, count, event_of);
	put_row_column(out, "thread", rows, count, thread_of);
	put_row_column(out, "period", rows, count, period_of);
	strbuf_str(out, "},\n");
}

int page_put_data(struct strbuf *out, const struct page *page, struct err *err)
{
	struct data data = {.page = page};
	int rc = collect(&data, err);

	if (!rc) {
		put_head(out, &data);
		rc = put_losses(out, page, err);
	}
	if (!rc) {
		put_events(out, &data);
		rc = put_metrics(out, &data, err);
	}
	if (!rc) {
		put_phases(out, &data);
		put_files(out, &data);
		put_functions(out, &data);
		put_threads(out, &data);
		put_stacks(out, &data);
		put_rows(out, &data);
		put_counted(out, &data);
		rc = page_put_sources(out, page, &data.stacks, err);
		strbuf_str(out, "}");
	}
	if (!rc && strbuf_failed(out))
		rc = err_nomem(err);
	slices_free(data.slices);
	slices_free(data.counted);
	renumber_fini(&data.functions);
	renumber_fini(&data.files);
	renumber_fini(&data.threads);
	renumber_fini(&data.events);
	page_stacks_fini(&data.stacks);
	view_matcher_free(data.matcher);
	names_free(data.names);
	return rc;
}
