#include "browse/choices.h"

#include "browse/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void choices_fini(struct choices *choices)
{
	for (size_t i = 0; i < choices->list.len; i++) {
		free(choices->list.items[i].value);
		free(choices->list.items[i].shown);
		free(choices->list.items[i].word);
	}
	vec_fini(&choices->list);
}

static int add(struct choices *choices, uint64_t weight, uint64_t whole, const char *value,
	       const char *shown, struct err *err)
{
	struct choice *choice = vec_push(&choices->list);
	struct strbuf word = {0};

	if (!choice)
		return err_nomem(err);
	strbuf_printf(&word, "%5.1f%%  %s", 100 * figure_share(weight, whole), shown);
	choice->weight = weight;
	choice->word = strbuf_detach(&word, NULL);
	choice->value = strdup(value);
	choice->shown = strdup(shown);
	return choice->word && choice->value && choice->shown ? 0 : err_nomem(err);
}

/* Threads or processes, by the number and the name. */
static int find_tasks(struct choices *choices, const struct report_view *view, enum view_key key,
		      struct err *err)
{
	const struct profile *profile = view->browse->profile;
	const enum view_key keys[] = {key, VIEW_COMM};
	struct view_groups *groups;
	uint32_t event = view->report.event;
	int rc = view_groups(&groups, profile, zooms_filter(&view->zooms), keys, 2, VIEW_BY_TOTAL,
			     event, err);

	for (size_t i = 0; !rc && i < groups->view.count; i++) {
		const struct view_row *row = &groups->view.rows[i];
		const char *comm = profile_text(profile, view_group_value(groups, row, 1));
		char value[16];
		struct strbuf shown = {0};

		snprintf(value, sizeof(value), "%" PRIu32, view_group_value(groups, row, 0));
		strbuf_printf(&shown, "%s (%s)", value, comm);
		if (row->counts[event].total)
			rc = add(choices, row->counts[event].total,
				 groups->view.period_total[event], value, strbuf_text(&shown), err);
		strbuf_fini(&shown);
	}
	if (!rc)
		view_groups_free(groups);
	return rc;
}

/* What a function adds to its file: a native one its own time, a Python one that of its lines. */
static uint64_t weight_of(const struct view_count *count, bool python)
{
	return python ? figure_innermost(count) : count->self;
}

/* Files by their functions' time; each is a number in `times` while it is summed up. */
static int find_files(struct choices *choices, const struct report_view *view, bool python,
		      struct err *err)
{
	const struct profile *profile = view->browse->profile;
	struct view *functions = NULL;
	uint32_t event = view->report.event;
	struct map times = {0};
	int rc = view_functions_of(&functions, view->basis, zooms_filter(&view->zooms),
				   VIEW_BY_SELF, event, err);

	for (size_t i = 0; !rc && i < functions->count; i++) {
		const struct view_row *row = &functions->rows[i];
		const struct profile_function *f = profile_function(profile, row->function);
		uint64_t *time;

		if ((f->kind == FRAME_PYTHON) != python)
			continue;
		time = map_put(&times, f->file, NULL);
		rc = time ? 0 : err_nomem(err);
		if (time)
			*time += weight_of(&row->counts[event], python);
	}
	for (size_t i = 0; !rc && i < functions->count; i++) {
		uint32_t file = profile_function(profile, functions->rows[i].function)->file;
		uint64_t *time = map_get(&times, file);
		struct strbuf shown = {0};

		if (!time || !*time)
			continue;
		names_add_file(view->names, file, &shown);
		rc = add(choices, *time, functions->period_total[event],
			 profile_text(profile, file), strbuf_text(&shown), err);
		strbuf_fini(&shown);
		*time = 0; /* each file once */
	}
	map_fini(&times);
	view_free(functions);
	return rc;
}

static int by_weight(const void *a, const void *b)
{
	const struct choice *ca = a, *cb = b;

	if (ca->weight != cb->weight)
		return ca->weight < cb->weight ? 1 : -1;
	return strcmp(ca->value, cb->value);
}

int choices_find(struct choices *choices, const struct report_view *view, enum zoom_into into,
		 struct err *err)
{
	int rc;

	choices_fini(choices);
	choices->into = into;
	if (into == ZOOM_THREAD || into == ZOOM_PROCESS)
		rc = find_tasks(choices, view, into == ZOOM_THREAD ? VIEW_TID : VIEW_PID, err);
	else
		rc = find_files(choices, view, into == ZOOM_FILE, err);
	if (choices->list.len)
		qsort(choices->list.items, choices->list.len, sizeof(*choices->list.items),
		      by_weight);
	return rc;
}

int choices_take(const struct choices *choices, size_t index, struct zooms *zooms, struct err *err)
{
	const struct choice *choice = &choices->list.items[index];

	return zooms_push(zooms, choices->into, choice->value, choice->shown, err);
}
