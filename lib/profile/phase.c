#include "profile/phase.h"

#include "data/data.h"
#include "profile/spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTION_VERSION 1u

static int by_begin(const void *a, const void *b)
{
	const struct profile_phase *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

int phases_read(struct profile *profile, struct bytes section, struct err *err)
{
	uint32_t version = bytes_u32(&section), count = bytes_u32(&section);

	if (section.bad || version != SECTION_VERSION)
		return ERR_CORRUPT;
	for (uint32_t i = 0; i < count; i++) {
		struct profile_phase phase = {.begin = bytes_u64(&section),
					      .end = bytes_u64(&section)},
				     *slot;
		struct bytes name;

		phase.pid = bytes_u32(&section);
		phase.tid = bytes_u32(&section);
		name = bytes_blob(&section);
		if (section.bad || phase.end < phase.begin)
			return ERR_CORRUPT;
		phase.name = intern_add(&profile->strings, (const char *)name.at,
					bytes_left(&name));
		slot = phase.name == INTERN_NONE ? NULL : vec_push(&profile->phases);
		if (!slot)
			return err_nomem(err);
		*slot = phase;
	}
	if (profile->phases.len)
		qsort(profile->phases.items, profile->phases.len, sizeof(struct profile_phase),
		      by_begin);
	return 0;
}

/* "load, train": each name once, as far as there is room. */
static void list_names(const struct profile *profile, char *list, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < profile->phases.len && len < size; i++) {
		uint32_t name = profile->phases.items[i].name;
		size_t before = 0;

		while (profile->phases.items[before].name != name)
			before++;
		if (before == i)
			len += (size_t)snprintf(list + len, size - len, "%s%s", len ? ", " : "",
						profile_text(profile, name));
	}
}

static int no_such_phase(const struct profile *profile, const char *name, struct err *err)
{
	char names[256] = "";

	err_set(err, ERR_NOT_FOUND, "the recording has no phase '%s'", name);
	list_names(profile, names, sizeof(names));
	if (names[0])
		err_hint(err, "It has: %s", names);
	else
		err_hint(err, "Programs name their phases through `pyperf record --control` or "
			      "the module pyperf_api.");
	return ERR_NOT_FOUND;
}

int phases_select(const struct profile *profile, const char *name, struct spans *spans,
		  struct err *err)
{
	for (size_t i = 0; i < profile->phases.len; i++) {
		const struct profile_phase *phase = &profile->phases.items[i];

		if (strcmp(profile_text(profile, phase->name), name) == 0 &&
		    !spans_add(spans, phase->begin, phase->end))
			return err_nomem(err);
	}
	if (!spans->list.len)
		return no_such_phase(profile, name, err);
	spans_join(spans);
	return 0;
}

size_t profile_phase_count(const struct profile *profile)
{
	return profile->phases.len;
}

const struct profile_phase *profile_phase(const struct profile *profile, size_t phase)
{
	return &profile->phases.items[phase];
}
