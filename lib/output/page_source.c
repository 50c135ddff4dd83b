#include "output/page.h"

#include "output/extent.h"
#include "perfmap/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Which lines of source the page carries: of each function that was sampled its whole body, and
 * elsewhere (the body of a module) what lies near a line with figures. The hottest files come
 * first, and what passes the limit is left out and counted.
 */
#define CONTEXT 4
#define BYTES_MAX (8u << 20) /* of text: about a quarter of that in the page */

struct place {
	uint32_t file, function, line;
};

struct file {
	uint32_t file;
	size_t first, count; /* of its places */
};

struct sources {
	const struct profile *profile;
	struct {
		VEC_OF(struct place)
	} places;
	struct {
		VEC_OF(struct file)
	} files;
};

static int by_place(const void *a, const void *b)
{
	const struct place *pa = a, *pb = b;

	if (pa->file != pb->file)
		return pa->file < pb->file ? -1 : 1;
	if (pa->function != pb->function)
		return pa->function < pb->function ? -1 : 1;
	return (pa->line > pb->line) - (pa->line < pb->line);
}

/* Files in which more was sampled first. */
static int by_size(const void *a, const void *b)
{
	const struct file *fa = a, *fb = b;

	if (fa->count != fb->count)
		return fa->count > fb->count ? -1 : 1;
	return (fa->file > fb->file) - (fa->file < fb->file);
}

static int find_places(struct sources *sources, const struct page_stacks *stacks, struct err *err)
{
	for (size_t i = 1; i < stacks->items.len; i++) {
		const struct page_stack *stack = &stacks->items.items[i];
		const struct profile_function *f = profile_function(sources->profile,
								    stack->function);
		struct place *place;

		if (f->kind != FRAME_PYTHON)
			continue;
		place = vec_push(&sources->places);
		if (!place)
			return err_nomem(err);
		*place = (struct place){f->file, stack->function, stack->line};
	}
	if (sources->places.len)
		qsort(sources->places.items, sources->places.len, sizeof(struct place), by_place);
	for (size_t i = 0; i < sources->places.len; i++) {
		struct file *last = sources->files.len
					    ? &sources->files.items[sources->files.len - 1]
					    : NULL;

		if (!last || last->file != sources->places.items[i].file) {
			last = vec_push(&sources->files);
			if (!last)
				return err_nomem(err);
			*last = (struct file){.file = sources->places.items[i].file, .first = i};
		}
		last->count++;
	}
	if (sources->files.len)
		qsort(sources->files.items, sources->files.len, sizeof(struct file), by_size);
	return 0;
}

static void mark(char *shown, uint32_t end, uint32_t from, uint32_t to)
{
	for (uint32_t line = from ? from : 1; line <= to && line <= end; line++)
		shown[line] = 1;
}

static void mark_places(const struct sources *sources, const struct file *file,
			const struct source *source, char *shown, uint32_t end)
{
	uint32_t before = UINT32_MAX;

	for (size_t i = 0; i < file->count; i++) {
		const struct place *place = &sources->places.items[file->first + i];
		const struct profile_function *f = profile_function(sources->profile,
								    place->function);

		if (place->function != before && f->line &&
		    strcmp(profile_text(sources->profile, f->name), "<module>") != 0)
			mark(shown, end, f->line > 1 ? f->line - 1 : 1,
			     extent_end(source, f->line) + 1);
		before = place->function;
		if (place->line)
			mark(shown, end, place->line > CONTEXT ? place->line - CONTEXT : 1,
			     place->line + CONTEXT);
	}
}

/* The quote of the triple-quoted string that is open behind the line, or 0; `open` is that before.
 */
static char open_behind(const char *text, size_t len, char open)
{
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		bool triple = (c == '"' || c == '\'') && i + 2 < len && text[i + 1] == c &&
			      text[i + 2] == c;

		if (c == '\\') {
			i++;
		} else if (open) {
			if (triple && c == open) {
				open = 0;
				i += 2;
			}
		} else if (c == '#') {
			break;
		} else if (triple) {
			open = c;
			i += 2;
		} else if (c == '"' || c == '\'') {
			for (i++; i < len && text[i] != c; i++)
				i += text[i] == '\\';
		}
	}
	return open;
}

/* [first line, quote of the string that it lies in, text, text, ...] for each run of lines. */
static void put_runs(struct strbuf *out, const struct source *source, const char *shown,
		     uint32_t end)
{
	struct strbuf text = {0};
	const char *comma = "";
	char open = 0, before;

	for (uint32_t line = 1; line <= end; line++) {
		size_t len = 0;
		const char *bytes = source_line(source, line, &len);

		before = open;
		open = open_behind(bytes, bytes ? len : 0, open);
		if (!shown[line])
			continue;
		if (!shown[line - 1])
			strbuf_printf(out, "%s[%" PRIu32 ",\"%s\"", comma, line,
				      before == '"'    ? "\\\"\\\"\\\""
				      : before == '\'' ? "'''"
						       : "");
		comma = ",";
		strbuf_reset(&text);
		names_add_source(&text, bytes ? bytes : "", bytes ? len : 0);
		strbuf_char(out, ',');
		page_put_text(out, strbuf_text(&text), text.len);
		if (line == end || !shown[line + 1])
			strbuf_char(out, ']');
	}
	if (strbuf_failed(&text))
		out->failed = 1;
	strbuf_fini(&text);
}

static int put_file(struct strbuf *out, const struct sources *sources, const struct file *file,
		    const struct source *source, bool *first, struct err *err)
{
	const char *name = profile_text(sources->profile, file->file);
	uint32_t end = source_line_count(source);
	char *shown = calloc((size_t)end + 2, 1);

	if (!shown)
		return err_nomem(err);
	mark_places(sources, file, source, shown, end);
	strbuf_str(out, *first ? "\n{\"path\":" : ",\n{\"path\":");
	*first = false;
	page_put_raw_text(out, name);
	strbuf_printf(out, ",\"changed\":%s,\"lines\":[",
		      source_changed(source) > 0 ? "true" : "false");
	put_runs(out, source, shown, end);
	strbuf_str(out, "]}");
	free(shown);
	return 0;
}

int page_put_sources(struct strbuf *out, const struct page *page, const struct page_stacks *stacks,
		     struct err *err)
{
	struct sources sources = {.profile = page->profile};
	size_t start = out->len;
	uint32_t left_out = 0;
	bool first = true;
	int rc = find_places(&sources, stacks, err);

	strbuf_str(out, "\"sources\":[");
	for (size_t i = 0; i < sources.files.len && !rc; i++) {
		const struct file *file = &sources.files.items[i];
		const struct source *source = profile_source(page->profile, file->file);

		if (!source)
			continue;
		if (out->len - start > BYTES_MAX)
			left_out++;
		else
			rc = put_file(out, &sources, file, source, &first, err);
	}
	strbuf_printf(out, "],\n\"sources_left_out\":%" PRIu32, left_out);
	vec_fini(&sources.places);
	vec_fini(&sources.files);
	return rc;
}
