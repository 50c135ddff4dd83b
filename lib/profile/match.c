#include "profile/match.h"

#include "profile/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct view_matcher {
	const struct profile *profile;
	bool *threads, *functions;
	bool all_functions; /* no filter on the leaf: samples without a stack pass too */
	bool *stacks;	    /* by the innermost Python frame; NULL: all */
};

/* Is the word one of those between the commas? NULL lists everything. */
static bool in_list(const char *list, const char *word)
{
	size_t len = strlen(word);

	while (list) {
		const char *end = strchr(list, ',');
		size_t n = end ? (size_t)(end - list) : strlen(list);

		if (n == len && memcmp(list, word, n) == 0)
			return true;
		if (!end)
			return false;
		list = end + 1;
	}
	return true;
}

static bool number_in_list(const char *list, uint32_t number)
{
	char word[16];

	snprintf(word, sizeof(word), "%" PRIu32, number);
	return in_list(list, word);
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] && path[0] != '<' ? slash + 1 : path;
}

static void decide(struct view_matcher *matcher, const struct view_filter *filter)
{
	const struct profile *profile = matcher->profile;

	for (uint32_t i = 0; i < profile_thread_count(profile); i++) {
		const struct profile_thread *thread = profile_thread(profile, i);

		matcher->threads[i] = in_list(filter->comm, profile_text(profile, thread->comm)) &&
				      number_in_list(filter->pids, thread->pid) &&
				      number_in_list(filter->tids, thread->tid);
	}
	matcher->all_functions = !filter->dso;
	for (uint32_t i = 0; filter->dso && i < profile_function_count(profile); i++) {
		const char *path = profile_text(profile, profile_function(profile, i)->file);

		matcher->functions[i] = in_list(filter->dso, last_component(path)) ||
					in_list(filter->dso, path);
	}
}

/* A stack has its caller's innermost Python frame, unless it is one itself. */
static int decide_stacks(struct view_matcher *matcher, const char *file)
{
	const struct profile *profile = matcher->profile;
	const struct profile_stack *stacks = profile->stacks.nodes.items;
	size_t count = profile_stack_count(profile), functions = profile_function_count(profile);
	enum { NO, YES, AS_CALLER } *of_function = calloc(functions + 1, sizeof(*of_function));

	matcher->stacks = calloc(count + 1, sizeof(bool));
	if (!matcher->stacks || !of_function) {
		free(of_function);
		return -1;
	}
	for (uint32_t i = 0; i < functions; i++) {
		const struct profile_function *f = profile_function(profile, i);

		of_function[i] = f->kind != FRAME_PYTHON			     ? AS_CALLER
				 : strcmp(profile_text(profile, f->file), file) == 0 ? YES
										     : NO;
	}
	for (uint32_t i = 1; i < count; i++) {
		uint32_t function = profile_frame_item(profile, stacks[i].frame)->frame.function;

		matcher->stacks[i] = of_function[function] == AS_CALLER
					     ? matcher->stacks[stacks[i].parent]
					     : of_function[function] == YES;
	}
	free(of_function);
	return 0;
}

int view_matcher_new(struct view_matcher **out, const struct profile *profile,
		     const struct view_filter *filter, struct err *err)
{
	static const struct view_filter none;
	struct view_matcher *matcher;

	*out = NULL;
	if (!filter)
		filter = &none;
	matcher = calloc(1, sizeof(*matcher));
	if (!matcher)
		return err_nomem(err);
	matcher->profile = profile;
	matcher->threads = calloc(profile_thread_count(profile) + 1, sizeof(bool));
	matcher->functions = calloc(profile_function_count(profile) + 1, sizeof(bool));
	if (!matcher->threads || !matcher->functions ||
	    (filter->python_file && decide_stacks(matcher, filter->python_file))) {
		view_matcher_free(matcher);
		return err_nomem(err);
	}
	decide(matcher, filter);
	*out = matcher;
	return 0;
}

void view_matcher_free(struct view_matcher *matcher)
{
	if (!matcher)
		return;
	free(matcher->threads);
	free(matcher->functions);
	free(matcher->stacks);
	free(matcher);
}

bool view_matches(const struct view_matcher *matcher, uint32_t thread, uint32_t stack)
{
	uint32_t frame;

	if (!matcher->threads[thread] || (matcher->stacks && !matcher->stacks[stack]))
		return false;
	if (matcher->all_functions)
		return true;
	if (!stack)
		return false;
	frame = profile_stack(matcher->profile, stack)->frame;
	return matcher->functions[profile_frame(matcher->profile, frame)->function];
}
