#include "event/internal.h"

#include "base/text.h"
#include "event/pfm.h"

#include <stdio.h>
#include <string.h>

/* Enough for every table of a large machine, and still some tens of milliseconds. */
#define NAMES_MAX 50000
#define SHOWN 3
#define NAME_LEN 80

struct search {
	const char *wanted;
	unsigned int limit; /* what is farther is not like it */
	unsigned int seen;
	size_t count;
	struct {
		char name[NAME_LEN];
		unsigned int distance;
	} best[SHOWN];
};

/* How far `name` is from the wanted one; "sched_switch" is near to "sched:sched_switch". */
static unsigned int distance(const char *name, const char *wanted)
{
	const char *colon = strrchr(name, ':');
	unsigned int whole = text_distance(name, wanted), part;

	if (!colon || strchr(wanted, ':'))
		return whole;
	part = text_distance(colon + 1, wanted);
	return part < whole ? part : whole;
}

static bool consider(const char *name, void *ctx)
{
	struct search *search = ctx;
	unsigned int d;
	size_t at;

	if (strlen(name) >= NAME_LEN)
		return true;
	d = distance(name, search->wanted);
	if (d > search->limit)
		return ++search->seen < NAMES_MAX;
	for (size_t i = 0; i < search->count; i++)
		if (strcmp(search->best[i].name, name) == 0)
			return true;
	for (at = search->count; at > 0 && search->best[at - 1].distance > d; at--)
		if (at < SHOWN)
			search->best[at] = search->best[at - 1];
	if (at < SHOWN) {
		snprintf(search->best[at].name, NAME_LEN, "%s", name);
		search->best[at].distance = d;
		if (search->count < SHOWN)
			search->count++;
	}
	return ++search->seen < NAMES_MAX;
}

void event_suggest(const struct event_system *sys, const char *unknown, struct err *err)
{
	struct search search = {.wanted = unknown};
	struct strbuf text = {0};

	search.limit = (unsigned int)strlen(unknown) < 4 ? 1
							 : 1 + (unsigned int)strlen(unknown) / 4;
	event_name_each(consider, &search);
	event_sysfs_each(sys, consider, &search);
	event_tracepoint_each(sys, consider, &search);
	if (!search.count || strstr(unknown, "::"))
		event_pfm_each(consider, &search);
	if (!search.count) {
		err_hint(err,
			 "events are named as perf names them: cycles, cache-misses, "
			 "page-faults, sched:sched_switch, r1a8, cpu/event=0x3c/, or as libpfm4 "
			 "does: perf::CYCLES");
		return;
	}
	for (size_t i = 0; i < search.count; i++)
		strbuf_printf(&text, "%s'%s'",
			      !i		     ? ""
			      : i + 1 < search.count ? ", "
						     : " or ",
			      search.best[i].name);
	err_hint(err, "did you mean %s?", strbuf_text(&text));
	strbuf_fini(&text);
}
