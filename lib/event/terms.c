#include "event/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * The terms between an event's slashes that say nothing of what is counted, so that any event takes
 * them, on a PMU or not: how it is called, and how it is sampled.
 */

/* As perf has them; not each event's to choose here, so the option for all is named. */
static const struct {
	const char *term, *instead;
} for_all[] = {
	{"time", "every sample has its time"},
	{"call-graph", "--call-graph is for all events"},
	{"stack-size", "--call-graph dwarf,SIZE is for all events"},
	{"max-stack", "kernel.perf_event_max_stack is for all events"},
	{"inherit", "children are recorded where --no-inherit does not leave them out"},
	{"no-inherit", "--no-inherit is for all events"},
	{"branch_type", "--call-graph lbr is for all events"},
	{"overwrite", NULL},
	{"no-overwrite", NULL},
	{"percore", NULL},
	{"aux-output", NULL},
	{"aux-sample-size", NULL},
	{"nr", NULL},
	{"max-events", NULL},
};

static int take_name(const char *text, char **renamed, struct err *err)
{
	size_t len = strlen(text);
	bool quoted = len >= 2 && (*text == '\'' || *text == '"') && text[len - 1] == *text;

	free(*renamed);
	*renamed = strndup(text + quoted, len - 2 * quoted);
	return *renamed ? 1 : err_nomem(err);
}

static int take_rate(const char *term, const char *text, struct perf_event_attr *attr,
		     struct err *err)
{
	uint64_t value, most = event_max_sample_rate();
	bool freq = strcmp(term, "freq") == 0;

	if (!text || !event_number(text, &value) || !value)
		return err_set(err, ERR_USAGE, "'%s=%s' is not a number above 0", term,
			       text ? text : "");
	if (freq && most && value > most) {
		err_set(err, ERR_USAGE, "'%s=%s' is above what the kernel allows, %" PRIu64, term,
			text, most);
		err_hint(err, "sysctl kernel.perf_event_max_sample_rate has that limit");
		return ERR_USAGE;
	}
	attr->freq = freq;
	attr->sample_period = value; /* or sample_freq, its union */
	return 1;
}

int event_term(const char *term, const char *text, struct perf_event_attr *attr, char **renamed,
	       struct err *err)
{
	if (text && strcmp(term, "name") == 0)
		return take_name(text, renamed, err);
	if (strcmp(term, "period") == 0 || strcmp(term, "freq") == 0)
		return take_rate(term, text, attr, err);
	for (size_t i = 0; i < sizeof(for_all) / sizeof(for_all[0]); i++) {
		if (strcmp(for_all[i].term, term) != 0)
			continue;
		err_set(err, ERR_USAGE, "'%s' is not an event's own to say", term);
		err_hint(err, "%s", for_all[i].instead ? for_all[i].instead : "leave it out");
		return ERR_USAGE;
	}
	return 0;
}

int event_terms_generic(const char *name, char *terms, struct perf_event_attr *attr, char **renamed,
			struct err *err)
{
	char *term;

	*renamed = NULL;
	while ((term = strsep(&terms, ","))) {
		char *text = strchr(term, '=');
		int ret;

		if (text)
			*text++ = '\0';
		ret = *term || text ? event_term(term, text, attr, renamed, err) : 1;
		if (ret > 0)
			continue;
		free(*renamed);
		*renamed = NULL;
		if (ret < 0)
			return ret;
		err_set(err, ERR_USAGE, "%s has no term '%s'", name, term);
		err_hint(err, "it takes period=N, freq=N and name=TEXT");
		return ERR_USAGE;
	}
	return 0;
}
