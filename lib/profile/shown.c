#include "profile/shown.h"

#include "profile/origin.h"
#include "profile/store.h"

#include "base/strbuf.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

typedef bool matches(const char *path, const char *pattern);

bool shown_is_file(const char *path, const char *pattern)
{
	bool found = strcmp(path, pattern) == 0 || fnmatch(pattern, path, 0) == 0;

	/* A star may stand for several folders: what is below a folder is in it. */
	for (const char *at = path; !found && (at = strchr(at, '/'));)
		found = fnmatch(pattern, ++at, 0) == 0;
	return found;
}

static bool is_either(const char *path, const char *pattern)
{
	return shown_is_file(path, pattern) || code_in_module(path, pattern);
}

/* One word of the list at a time, in a copy that is cut up. */
static bool any_matches(const char *path, const char *list, matches *how)
{
	char *words = strdup(list), *save = NULL;
	bool found = false;

	for (char *word = words ? strtok_r(words, ",", &save) : NULL; word && !found;
	     word = strtok_r(NULL, ",", &save))
		found = how(path, word);
	free(words);
	return found;
}

static bool is_shown(const char *path, const struct profile_shown *shown)
{
	bool wanted = !shown->files && !shown->modules;

	wanted = wanted || (shown->files && any_matches(path, shown->files, shown_is_file));
	wanted = wanted || (shown->modules && any_matches(path, shown->modules, code_in_module));
	return wanted && !(shown->exclude && any_matches(path, shown->exclude, is_either));
}

/* By function; NULL when memory ran out. Files are asked for once each. */
static bool *decide(const struct profile *profile, const struct profile_shown *shown)
{
	size_t count = profile_function_count(profile);
	bool *decided = calloc(count + 1, sizeof(*decided));
	struct map files = {0};

	for (uint32_t i = 0; decided && i < count; i++) {
		uint32_t file = profile_function(profile, i)->file;
		bool added;
		uint64_t *slot = map_put(&files, file, &added);

		if (!slot) {
			free(decided);
			decided = NULL;
			break;
		}
		if (added)
			*slot = is_shown(profile_text(profile, file), shown);
		decided[i] = *slot;
	}
	map_fini(&files);
	return decided;
}

/* The frame that stands for stacks of which nothing is shown. */
static uint32_t add_unshown(struct profile *profile)
{
	struct function_item key = {.function.kind = FRAME_NATIVE};
	uint32_t function, frame;

	key.function.name = key.function.qualname = intern_str(&profile->strings,
							       PROFILE_UNSHOWN_NAME);
	key.function.file = intern_str(&profile->strings, "");
	if (key.function.name == INTERN_NONE || key.function.file == INTERN_NONE)
		return KEYED_NONE;
	function = profile_add_function(profile, &key, 0);
	if (function == KEYED_NONE)
		return KEYED_NONE;
	frame = profile_add_frame(profile, ORIGIN_IMPORTED, function, 0);
	if (frame != KEYED_NONE)
		profile_frame_item(profile, frame)->frame.function = function;
	return frame;
}

/* "files src/x, modules json, all but tests" */
static const char *describe(struct profile *profile, const struct profile_shown *shown)
{
	const struct {
		const char *word, *list;
	} parts[] = {{"files ", shown->files},
		     {"modules ", shown->modules},
		     {"all but ", shown->exclude}};
	struct strbuf text = {0};
	const char *kept;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].list)
			strbuf_printf(&text, "%s%s%s", text.len ? ", " : "", parts[i].word,
				      parts[i].list);
	kept = strbuf_failed(&text) ? NULL : profile_keep(profile, strbuf_text(&text));
	strbuf_fini(&text);
	return kept;
}

static uint32_t function_of(const struct profile *profile, const struct profile_stack *stack)
{
	return profile_frame(profile, stack->frame)->function;
}

int profile_show(struct profile *profile, const struct profile_shown *shown, struct err *err)
{
	struct profile_stack *stacks = profile->stacks.nodes.items;
	size_t count = profile_stack_count(profile);
	uint32_t unshown;
	bool *decided, any = false;

	if (!shown->files && !shown->modules && !shown->exclude)
		return 0;
	decided = decide(profile, shown);
	profile->leaf_kinds = malloc(count);
	unshown = add_unshown(profile);
	profile->summary.shown = describe(profile, shown);
	if (!profile->summary.shown || !decided || !profile->leaf_kinds || unshown == KEYED_NONE) {
		free(decided);
		return err_nomem(err);
	}
	profile->leaf_kinds[0] = FRAME_NATIVE;
	for (size_t i = 1; i < count; i++) {
		uint32_t function = function_of(profile, &stacks[i]);

		profile->leaf_kinds[i] = (uint8_t)profile_function(profile, function)->kind;
		/* A caller's number is lower: it is what it shall be already. */
		any |= decided[function];
		if (!decided[function])
			stacks[i] = stacks[i].parent ? stacks[stacks[i].parent]
						     : (struct profile_stack){0, unshown};
		else if (stacks[i].parent && stacks[stacks[i].parent].frame == unshown)
			stacks[i].parent = 0;
	}
	free(decided);
	if (any || count == 1)
		return 0;
	err_set(err, ERR_NOT_FOUND, "nothing that was sampled is left to show: %s",
		profile->summary.shown);
	err_hint(err, "pyperf report --sort file lists the files that there are.");
	return ERR_NOT_FOUND;
}
