#include "cmd/match.h"

#include "base/text.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct search {
	const struct profile *profile;
	const struct view *functions, *lines;
	const char *word;
	const char *file; /* of "file.py:line"; NULL where the word is none */
	uint32_t line;
};

static const char *qualname(const struct search *search, const struct profile_function *f)
{
	return profile_text(search->profile, f->qualname ? f->qualname : f->name);
}

/* Is `tail` the path or its last components? */
static bool ends_path(const char *path, const char *tail)
{
	size_t len = strlen(path), n = strlen(tail);

	return n && len >= n && strcmp(path + len - n, tail) == 0 &&
	       (len == n || path[len - n - 1] == '/');
}

/* A function that has figures on the line. */
static bool by_line(const struct search *search, uint32_t function)
{
	const struct profile_function *f = profile_function(search->profile, function);

	if (!search->file || !ends_path(profile_text(search->profile, f->file), search->file))
		return false;
	for (size_t i = 0; i < search->lines->count; i++)
		if (search->lines->rows[i].function == function &&
		    search->lines->rows[i].line == search->line)
			return true;
	return false;
}

/* The function that starts last before the line: the line itself had no samples. */
static bool by_start(const struct search *search, uint32_t function)
{
	const struct profile_function *f = profile_function(search->profile, function);

	if (!search->file || f->kind != FRAME_PYTHON || f->line > search->line ||
	    !ends_path(profile_text(search->profile, f->file), search->file))
		return false;
	for (size_t i = 0; i < search->functions->count; i++) {
		const struct profile_function *other = profile_function(
			search->profile, search->functions->rows[i].function);

		if (other->file == f->file && other->line > f->line && other->line <= search->line)
			return false;
	}
	return true;
}

static bool by_qualname(const struct search *search, uint32_t function)
{
	return strcmp(qualname(search, profile_function(search->profile, function)),
		      search->word) == 0;
}

static bool by_name(const struct search *search, uint32_t function)
{
	const struct profile_function *f = profile_function(search->profile, function);

	return strcmp(profile_text(search->profile, f->name), search->word) == 0;
}

static bool by_tail(const struct search *search, uint32_t function)
{
	const char *name = qualname(search, profile_function(search->profile, function));
	size_t len = strlen(name), n = strlen(search->word);

	return n && len > n && name[len - n - 1] == '.' &&
	       strcmp(name + len - n, search->word) == 0;
}

static bool by_module(const struct search *search, uint32_t function)
{
	const struct profile_function *f = profile_function(search->profile, function);
	const char *path = profile_text(search->profile, f->file), *base = strrchr(path, '/');
	size_t len;

	base = base ? base + 1 : path;
	len = strcspn(base, ".");
	return f->kind == FRAME_PYTHON && strncmp(search->word, base, len) == 0 &&
	       search->word[len] == '.' && strcmp(search->word + len + 1, qualname(search, f)) == 0;
}

static bool by_glob(const struct search *search, uint32_t function)
{
	const struct profile_function *f = profile_function(search->profile, function);

	return strpbrk(search->word, "*?[") &&
	       (fnmatch(search->word, qualname(search, f), 0) == 0 ||
		fnmatch(search->word, profile_text(search->profile, f->name), 0) == 0);
}

static bool (*const ways[])(const struct search *search, uint32_t function) = {
	by_line, by_start, by_qualname, by_name, by_tail, by_module, by_glob,
};

int match_functions(struct matches *matches, const struct profile *profile,
		    const struct view *functions, const struct view *lines, const char *word,
		    struct err *err)
{
	struct search search = {profile, functions, lines, word, NULL, 0};
	const char *colon = strrchr(word, ':');
	char *file = NULL;

	*matches = (struct matches){0};
	matches->functions = calloc(functions->count + 1, sizeof(*matches->functions));
	if (colon && colon != word && colon[1] &&
	    strspn(colon + 1, "0123456789") == strlen(colon + 1))
		search.file = file = strndup(word, (size_t)(colon - word));
	if (!matches->functions || (colon && search.file != file)) {
		free(file);
		return err_nomem(err);
	}
	if (file)
		search.line = (uint32_t)strtoul(colon + 1, NULL, 10);
	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]) && !matches->count; way++)
		for (size_t i = 0; i < functions->count; i++)
			if (ways[way](&search, functions->rows[i].function))
				matches->functions[matches->count++] = functions->rows[i].function;
	free(file);
	return 0;
}

void match_free(struct matches *matches)
{
	free(matches->functions);
	*matches = (struct matches){0};
}

/* Far enough apart to be no misspelling: 0 is the same. */
static unsigned int distance(const char *word, const char *name)
{
	const char *last = strrchr(name, '.');
	unsigned int whole = text_distance(word, name), end;

	if (strlen(word) >= 3 && strcasestr(name, word))
		return 1;
	end = last ? text_distance(word, last + 1) : whole;
	return end < whole ? end : whole;
}

uint32_t match_nearest(const struct profile *profile, const struct view *functions,
		       const char *word)
{
	unsigned int best = (unsigned int)strlen(word) / 3 + 2;
	uint32_t nearest = UINT32_MAX;

	/* Of equally near ones the first, which has the most samples. */
	for (size_t i = 0; i < functions->count; i++) {
		uint32_t id = functions->rows[i].function;
		const struct profile_function *f = profile_function(profile, id);
		unsigned int d = distance(
			word, profile_text(profile, f->qualname ? f->qualname : f->name));

		if (d < best) {
			best = d;
			nearest = id;
		}
	}
	return nearest;
}
