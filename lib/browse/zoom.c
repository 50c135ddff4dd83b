#include "browse/zoom.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What each is called, and the field of the filter that it narrows. */
static const struct {
	const char *name;
	size_t field;
} kinds[] = {
	[ZOOM_COMM] = {"command", offsetof(struct view_filter, comm)},
	[ZOOM_PROCESS] = {"process", offsetof(struct view_filter, pids)},
	[ZOOM_THREAD] = {"thread", offsetof(struct view_filter, tids)},
	[ZOOM_MODULE] = {"module", offsetof(struct view_filter, dso)},
	[ZOOM_FILE] = {"file", offsetof(struct view_filter, python_file)},
};

const char *zoom_name(enum zoom_into into)
{
	return kinds[into].name;
}

bool zooms_pop(struct zooms *zooms)
{
	struct zoom *top;

	if (!zooms->stack.len)
		return false;
	top = &zooms->stack.items[--zooms->stack.len];
	free(top->value);
	free(top->label);
	return true;
}

void zooms_fini(struct zooms *zooms)
{
	while (zooms_pop(zooms))
		;
	vec_fini(&zooms->stack);
}

const struct view_filter *zooms_filter(const struct zooms *zooms)
{
	return zooms->stack.len ? &zooms->stack.items[zooms->stack.len - 1].filter : &zooms->base;
}

int zooms_push(struct zooms *zooms, enum zoom_into into, const char *value, const char *shown,
	       struct err *err)
{
	struct view_filter filter = *zooms_filter(zooms);
	struct zoom *zoom = vec_push(&zooms->stack);
	struct strbuf label = {0};

	if (!zoom)
		return err_nomem(err);
	strbuf_printf(&label, "%s %s", kinds[into].name, shown ? shown : value);
	zoom->label = strbuf_detach(&label, NULL);
	zoom->value = strdup(value);
	if (!zoom->value || !zoom->label) {
		zooms_pop(zooms);
		return err_nomem(err);
	}
	memcpy((char *)&filter + kinds[into].field, &zoom->value, sizeof(zoom->value));
	zoom->filter = filter;
	return 0;
}

static int push_file(struct zooms *zooms, const struct profile *profile, const struct names *names,
		     uint32_t file, bool python, struct err *err)
{
	struct strbuf shown = {0};
	int rc;

	names_add_file(names, file, &shown);
	rc = zooms_push(zooms, python ? ZOOM_FILE : ZOOM_MODULE, profile_text(profile, file),
			strbuf_text(&shown), err);
	strbuf_fini(&shown);
	return rc;
}

int zooms_push_function(struct zooms *zooms, const struct profile *profile,
			const struct names *names, uint32_t function, struct err *err)
{
	const struct profile_function *f = profile_function(profile, function);

	return push_file(zooms, profile, names, f->file, f->kind == FRAME_PYTHON, err);
}

/* Is there a Python function of that file? */
static bool is_python(const struct profile *profile, uint32_t file)
{
	for (uint32_t i = 0; i < profile_function_count(profile); i++)
		if (profile_function(profile, i)->file == file)
			return profile_function(profile, i)->kind == FRAME_PYTHON;
	return false;
}

int zooms_push_group(struct zooms *zooms, const struct profile *profile, const struct names *names,
		     enum view_key key, uint32_t value, struct err *err)
{
	char number[16];

	if (value == VIEW_GROUP_NONE || value == VIEW_GROUP_PYTHON)
		return 0;
	snprintf(number, sizeof(number), "%" PRIu32, value);
	switch (key) {
	case VIEW_COMM:
		return zooms_push(zooms, ZOOM_COMM, profile_text(profile, value), NULL, err);
	case VIEW_PID:
		return zooms_push(zooms, ZOOM_PROCESS, number, NULL, err);
	case VIEW_TID:
		return zooms_push(zooms, ZOOM_THREAD, number, NULL, err);
	case VIEW_DSO:
	case VIEW_FILE:
		return push_file(zooms, profile, names, value, is_python(profile, value), err);
	case VIEW_FUNCTION:
		return zooms_push_function(zooms, profile, names, value, err);
	case VIEW_KIND:
	case VIEW_ORIGIN:
		break;
	}
	return 0;
}
