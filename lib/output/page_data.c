#include "output/page.h"

#include "output/summary.h"
#include "profile/match.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * The page's data: one JSON object whose tables are arrays by column, since these compress well and
 * are read fast. page/README.md says what each means. Only what passes the filter is in it, and
 * functions, files, threads and events are numbered anew.
 */
#define STACKS_MAX 300000
#define ROWS_MAX 400000
#define NONE UINT32_MAX

struct row {
	uint32_t slice, event, thread, stack;
	uint64_t samples, period;
};

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
	struct {
		VEC_OF(struct row)
	} rows;
	unsigned int widened; /* slices were joined so many times in pairs */
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

static int by_row(const void *a, const void *b)
{
	const struct row *ra = a, *rb = b;

	if (ra->slice != rb->slice)
		return ra->slice < rb->slice ? -1 : 1;
	if (ra->event != rb->event)
		return ra->event < rb->event ? -1 : 1;
	if (ra->thread != rb->thread)
		return ra->thread < rb->thread ? -1 : 1;
	return (ra->stack > rb->stack) - (ra->stack < rb->stack);
}

/* Rows that differ in nothing but their figures become one. */
static void merge_rows(struct data *data)
{
	size_t kept = 0;

	if (data->rows.len)
		qsort(data->rows.items, data->rows.len, sizeof(struct row), by_row);
	for (size_t i = 0; i < data->rows.len; i++) {
		struct row *row = &data->rows.items[i];
		struct row *last = kept ? &data->rows.items[kept - 1] : NULL;

		if (last && by_row(last, row) == 0) {
			last->samples += row->samples;
			last->period += row->period;
		} else {
			data->rows.items[kept++] = *row;
		}
	}
	data->rows.len = kept;
}

static int collect_rows(struct data *data)
{
	const struct slices *slices = data->page->slices;

	for (size_t i = 0; i < slices_row_count(slices); i++) {
		const struct slice_row *row = slices_row(slices, i);
		struct row *place;

		if (!names_event_has_samples(data->names, row->event) ||
		    !view_matches(data->matcher, row->thread, row->stack))
			continue;
		place = vec_push(&data->rows);
		if (!place || renumber(&data->threads, row->thread))
			return -1;
		*place = (struct row){row->slice,
				      data->events.to[row->event],
				      data->threads.to[row->thread],
				      data->stacks.of_stack[row->stack],
				      row->samples,
				      row->period};
	}
	merge_rows(data);
	while (data->rows.len > ROWS_MAX && slices_count(slices) >> data->widened > 1) {
		data->widened++;
		for (size_t i = 0; i < data->rows.len; i++)
			data->rows.items[i].slice /= 2;
		merge_rows(data);
	}
	return 0;
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
		rc = page_stacks_init(&data->stacks, profile, page->slices, data->matcher,
				      STACKS_MAX, err);
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
	return collect_rows(data) ? err_nomem(err) : 0;
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

static void put_raw_text(struct strbuf *out, const char *text)
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

static void put_head(struct strbuf *out, const struct data *data)
{
	const struct page *page = data->page;
	const struct profile_summary *s = profile_summary(page->profile);

	strbuf_str(out, "{\"format\":1,\n\"command\":");
	put_raw_text(out, s->command);
	strbuf_str(out, ",\"python\":");
	put_raw_text(out, s->python_version);
	strbuf_str(out, ",\"filter\":");
	put_raw_text(out, page->filter_text);
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
		put_raw_text(out, names_event(data->names, e));
		strbuf_printf(out,
			      ",\"frequency\":%.0f,\"every\":%" PRIu64 ",\"lost\":%" PRIu64 "}",
			      event->frequency, event->period, event->lost);
	}
	strbuf_printf(out, "],\n\"event\":%" PRIu32 ",\n",
		      data->page->event < profile_event_count(profile) &&
				      data->events.to[data->page->event] != NONE
			      ? data->events.to[data->page->event]
			      : 0);
}

static void put_files(struct strbuf *out, const struct data *data)
{
	struct strbuf text = {0};

	strbuf_str(out, "\"files\":[");
	for (size_t i = 0; i < data->files.from.len; i++) {
		strbuf_str(out, i ? ",\n[" : "[");
		put_raw_text(out, profile_text(data->page->profile, data->files.from.items[i]));
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
		put_raw_text(out, profile_text(profile, t->comm));
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
	strbuf_str(out, "},\n");
}

static void put_rows(struct strbuf *out, const struct data *data)
{
	const struct slices *slices = data->page->slices;
	const struct row *rows = data->rows.items;
	size_t count = data->rows.len;

	strbuf_printf(out, "\"slices\":{\"width\":%" PRIu64 ",\"count\":%" PRIu32 "},\n",
		      slices_width(slices) << data->widened,
		      ((slices_count(slices) - 1) >> data->widened) + 1);
	strbuf_str(out, "\"rows\":{");
	PUT_COLUMN(out, "slice", 0, count, rows[i].slice - (i ? rows[i - 1].slice : 0));
	strbuf_str(out, ",\n");
	PUT_COLUMN(out, "event", 0, count, rows[i].event);
	strbuf_str(out, ",\n");
	PUT_COLUMN(out, "thread", 0, count, rows[i].thread);
	strbuf_str(out, ",\n");
	PUT_COLUMN(out, "stack", 0, count,
		   (int64_t)rows[i].stack - (i ? (int64_t)rows[i - 1].stack : 0));
	strbuf_str(out, ",\n");
	PUT_COLUMN(out, "samples", 0, count, clamped(rows[i].samples));
	strbuf_str(out, ",\n");
	PUT_COLUMN(out, "period", 0, count, clamped(rows[i].period));
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
		put_files(out, &data);
		put_functions(out, &data);
		put_threads(out, &data);
		put_stacks(out, &data);
		put_rows(out, &data);
		rc = page_put_sources(out, page, &data.stacks, err);
		strbuf_str(out, "}");
	}
	if (!rc && strbuf_failed(out))
		rc = err_nomem(err);
	vec_fini(&data.rows);
	renumber_fini(&data.functions);
	renumber_fini(&data.files);
	renumber_fini(&data.threads);
	renumber_fini(&data.events);
	page_stacks_fini(&data.stacks);
	view_matcher_free(data.matcher);
	names_free(data.names);
	return rc;
}
