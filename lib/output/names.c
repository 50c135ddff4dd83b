#include "output/names.h"

#include "base/intern.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"

#include <string.h>

/* Path components that say little: their folder is named too. */
static const char *const dull[] = {"__init__.py", "__main__.py"};

#define TAB 8
#define TAIL_MAX 16 /* components; after that the whole path */

struct file_name {
	uint32_t file; /* string id */
	uint32_t tail; /* where the short name starts in the text */
};

struct names {
	const struct profile *profile;
	struct arena arena;
	const char **events;
	struct map files; /* string id -> index into `items` */
	struct {
		VEC_OF(struct file_name)
	} items;
};

/* Offset of the last `components` components. */
static uint32_t tail_at(const char *path, unsigned int components)
{
	size_t at = strlen(path);

	if (path[0] == '<' || path[0] == '[')
		return 0;
	while (at && components) {
		at--;
		if (path[at] == '/' && path[at + 1] && !--components)
			return (uint32_t)at + 1;
	}
	return 0;
}

static bool is_dull(const char *path)
{
	const char *base = path + tail_at(path, 1);

	for (size_t i = 0; i < sizeof(dull) / sizeof(dull[0]); i++)
		if (strcmp(base, dull[i]) == 0)
			return true;
	return false;
}

/* Lengthens the tails of those that share one, until none do. */
static int make_unique(struct names *names, struct err *err)
{
	struct {
		VEC_OF(uint32_t)
	} first = {0};
	bool again = true;
	int rc = 0;

	for (unsigned int depth = 1; again && depth <= TAIL_MAX && !rc; depth++) {
		struct intern tails;

		again = false;
		intern_init(&tails);
		first.len = 0;
		for (size_t i = 0; i < names->items.len && !rc; i++) {
			struct file_name *item = &names->items.items[i];
			const char *path = profile_text(names->profile, item->file);
			uint32_t before = tails.count, id = intern_str(&tails, path + item->tail);
			uint32_t *slot;

			/* The empty name, of a file that is not known, is always there. */
			if (!path[0])
				continue;
			if (id == INTERN_NONE) {
				rc = err_nomem(err);
			} else if (tails.count != before) {
				while (first.len <= id && !rc) {
					slot = vec_push(&first);
					if (!slot)
						rc = err_nomem(err);
				}
				if (!rc)
					first.items[id] = (uint32_t)i;
			} else if (id < first.len) {
				struct file_name *other = &names->items.items[first.items[id]];
				const char *twin = profile_text(names->profile, other->file);

				again = true;
				item->tail = tail_at(path, depth + 1);
				if (tail_at(twin, depth + 1) < other->tail)
					other->tail = tail_at(twin, depth + 1);
			}
		}
		intern_fini(&tails);
	}
	vec_fini(&first);
	return rc;
}

static int add_files(struct names *names, struct err *err)
{
	const struct profile *profile = names->profile;
	size_t count = profile_function_count(profile);

	for (size_t i = 0; i < count; i++) {
		uint32_t file = profile_function(profile, (uint32_t)i)->file;
		const char *path = profile_text(profile, file);
		struct file_name *item;
		bool added;
		uint64_t *slot = map_put(&names->files, file, &added);

		if (!slot)
			return err_nomem(err);
		if (!added)
			continue;
		*slot = names->items.len;
		item = vec_push(&names->items);
		if (!item)
			return err_nomem(err);
		item->file = file;
		item->tail = tail_at(path, is_dull(path) ? 2 : 1);
	}
	return make_unique(names, err);
}

static int add_events(struct names *names, struct err *err)
{
	size_t count = profile_event_count(names->profile);

	names->events = arena_alloc(&names->arena, (count + 1) * sizeof(*names->events));
	if (!names->events)
		return err_nomem(err);
	for (uint32_t i = 0; i < count; i++) {
		const char *name = profile_event(names->profile, i)->name;
		unsigned int same = 1;

		for (uint32_t j = 0; j < i; j++)
			same += strcmp(profile_event(names->profile, j)->name, name) == 0;
		if (same > 1) {
			struct strbuf text = {0};

			strbuf_printf(&text, "%s#%u", name, same);
			name = strbuf_failed(&text)
				       ? NULL
				       : arena_strdup(&names->arena, strbuf_text(&text));
			strbuf_fini(&text);
			if (!name)
				return err_nomem(err);
		}
		names->events[i] = name;
	}
	return 0;
}

int names_new(struct names **out, const struct profile *profile, struct err *err)
{
	struct names *names = calloc(1, sizeof(*names));
	int rc;

	*out = NULL;
	if (!names)
		return err_nomem(err);
	names->profile = profile;
	arena_init(&names->arena);
	rc = add_events(names, err);
	if (!rc)
		rc = add_files(names, err);
	if (rc)
		names_free(names);
	else
		*out = names;
	return rc;
}

void names_free(struct names *names)
{
	if (!names)
		return;
	vec_fini(&names->items);
	map_fini(&names->files);
	arena_fini(&names->arena);
	free(names);
}

const char *names_event(const struct names *names, uint32_t event)
{
	return names->events[event];
}

bool names_event_has_samples(const struct names *names, uint32_t event)
{
	const struct profile_event *e = profile_event(names->profile, event);

	return e->sampled && e->samples;
}

bool names_event_has_columns(const struct names *names, uint32_t event, uint32_t ranked)
{
	return names_event_has_samples(names, event) &&
	       (event == ranked ||
		!profile_event_counted(profile_event(names->profile, event), event));
}

void names_add_text(struct strbuf *out, const char *text)
{
	text_escape(out, text, strlen(text));
}

void names_add_event(const struct names *names, uint32_t event, struct strbuf *out)
{
	names_add_text(out, names->events[event]);
}

static const char *function_name(const struct names *names, uint32_t function)
{
	const struct profile_function *f = profile_function(names->profile, function);

	return profile_text(names->profile, f->qualname ? f->qualname : f->name);
}

bool names_is_unnamed(const struct names *names, uint32_t function)
{
	const char *name = function_name(names, function);

	return profile_function(names->profile, function)->kind != FRAME_PYTHON &&
	       (name[0] == '[' || (strncmp(name, "0x", 2) == 0 && strstr(name, " [")));
}

void names_add_function(const struct names *names, uint32_t function, struct strbuf *out)
{
	names_add_text(out, function_name(names, function));
}

void names_add_file(const struct names *names, uint32_t file, struct strbuf *out)
{
	const uint64_t *slot = map_get(&names->files, file);
	uint32_t tail = slot ? names->items.items[*slot].tail : 0;

	names_add_text(out, profile_text(names->profile, file) + tail);
}

void names_add_place(const struct names *names, uint32_t function, struct strbuf *out)
{
	const struct profile_function *f = profile_function(names->profile, function);

	if (names_is_unnamed(names, function))
		return;
	names_add_file(names, f->file, out);
	if (f->kind == FRAME_PYTHON && f->line)
		strbuf_printf(out, ":%u", f->line);
}

/* Columns are counted: `column` is that of expanded[counted]. */
void names_add_source(struct strbuf *out, const char *text, size_t len)
{
	struct strbuf expanded = {0};
	size_t column = 0, counted = 0;

	while (len && (text[len - 1] == '\r' || text[len - 1] == '\n'))
		len--;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\f')
			continue;
		if (text[i] != '\t') {
			strbuf_char(&expanded, text[i]);
			continue;
		}
		column += text_width(strbuf_text(&expanded) + counted, expanded.len - counted);
		do
			strbuf_char(&expanded, ' ');
		while (++column % TAB);
		counted = expanded.len;
	}
	text_escape(out, strbuf_text(&expanded), expanded.len);
	strbuf_fini(&expanded);
}
