#include "event/internal.h"

#include "base/io.h"
#include "base/text.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * Events of the PMUs that the kernel describes in sysfs (Documentation/ABI/testing/
 * sysfs-bus-event_source-devices-*).
 *
 *   PMU/type           the number for attr.type
 *   PMU/format/TERM    where a term's bits go: "config:0-7,32-35" or "config1:3"
 *   PMU/events/NAME    a named list of terms: "event=0x3c,umask=0x1"; '?' is for the user to fill
 *
 * Terms apply from left to right, so what stands behind an alias overrides it.
 */

#define LINE 512
/* An alias may name another; no kernel nests deeper. */
#define ALIAS_DEPTH 4

struct pmu {
	const struct event_system *sys;
	const char *name;
	uint32_t type;
	const char *given; /* all terms as the user wrote them */
	char **renamed;
};

bool event_sysfs_read(const struct event_system *sys, const char *pmu, const char *folder,
		      const char *file, char *buf, size_t size)
{
	char path[PATH_MAX];
	int len;

	if (!*pmu || *pmu == '.' || strchr(pmu, '/') || !*file || *file == '.' || strchr(file, '/'))
		return false;
	len = snprintf(path, sizeof(path), "%s/%s/%s%s%s", sys->devices, pmu, folder,
		       *folder ? "/" : "", file);
	if (len < 0 || (size_t)len >= sizeof(path))
		return false;
	return io_read_line(path, buf, size, NULL) >= 0;
}

/* Files beside an alias that say how to show its counts. */
static bool is_annotation(const char *name)
{
	static const char *const endings[] = {".scale", ".unit", ".snapshot", ".per-pkg"};
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t n = strlen(endings[i]);

		if (len > n && strcmp(name + len - n, endings[i]) == 0)
			return true;
	}
	return false;
}

bool event_number(const char *text, uint64_t *value)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	size_t len = strlen(digits);
	char *end;

	if (!len || strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789") != len)
		return false;
	errno = 0;
	*value = strtoull(digits, &end, hex ? 16 : 10);
	return !errno && !*end;
}

/* Takes "0-7" or "3" off a format line; false where it says something else. */
static bool take_range(const char **at, unsigned int *first, unsigned int *last)
{
	int used = 0;

	if (sscanf(*at, "%2u%n", first, &used) != 1)
		return false;
	*at += used;
	*last = *first;
	if (**at == '-') {
		if (sscanf(*at, "-%2u%n", last, &used) != 1)
			return false;
		*at += used;
	}
	return *first <= *last && *last < 64;
}

/* Puts a value into the bits that a format line names, lowest bits first. */
static int put_bits(const char *format, uint64_t value, const char *term,
		    struct perf_event_attr *attr, struct err *err)
{
	uint64_t words[3] = {attr->config, attr->config1, attr->config2}, rest = value;
	unsigned int word = 0, first, last;
	const char *at = format;

	if (strncmp(at, "config", 6) != 0)
		goto unknown;
	at += 6;
	if (*at == '1' || *at == '2')
		word = (unsigned int)(*at++ - '0');
	if (*at != ':')
		goto unknown;
	do {
		uint64_t mask;

		at++; /* ':' or ',' */
		if (!take_range(&at, &first, &last))
			goto unknown;
		mask = UINT64_MAX >> (63 - (last - first));
		words[word] = (words[word] & ~(mask << first)) | (rest & mask) << first;
		rest = last - first == 63 ? 0 : rest >> (last - first + 1);
	} while (*at == ',');
	if (*at)
		goto unknown;
	if (rest)
		return err_set(err, ERR_USAGE, "0x%llx does not fit into '%s' (%s)",
			       (unsigned long long)value, term, format);
	attr->config = words[0];
	attr->config1 = words[1];
	attr->config2 = words[2];
	return 0;
unknown:
	return err_set(err, ERR_UNSUPPORTED, "'%s' has a format that is not known: %s", term,
		       format);
}

/* Whether the user's own terms give `name` a value. */
static bool is_given(const char *terms, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = terms; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, len) == 0 && at[len] == '=')
			return true;
	}
	return false;
}

struct nearest {
	const char *wanted;
	char best[128];
	unsigned int distance;
};

static void nearest_entry(const struct pmu *pmu, const char *folder, struct nearest *nearest)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s/%s", pmu->sys->devices, pmu->name, folder);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		unsigned int distance = text_distance(entry->d_name, nearest->wanted);

		if (entry->d_name[0] == '.' || is_annotation(entry->d_name) ||
		    distance >= nearest->distance || strlen(entry->d_name) >= sizeof(nearest->best))
			continue;
		nearest->distance = distance;
		snprintf(nearest->best, sizeof(nearest->best), "%.127s", entry->d_name);
	}
	if (dir)
		closedir(dir);
}

static int unknown_term(const struct pmu *pmu, const char *term, struct err *err)
{
	struct nearest nearest = {.wanted = term, .distance = 1 + (unsigned int)strlen(term) / 2};
	int ret = err_set(err, ERR_USAGE, "the PMU %s has no event or term '%s'", pmu->name, term);

	nearest_entry(pmu, "events", &nearest);
	nearest_entry(pmu, "format", &nearest);
	if (nearest.best[0])
		err_hint(err, "did you mean '%s'?", nearest.best);
	else
		err_hint(err,
			 "%s/%s/events and format list what it has, besides config, config1 "
			 "and config2",
			 pmu->sys->devices, pmu->name);
	return ret;
}

static int apply_terms(const struct pmu *pmu, const char *terms, int depth,
		       struct perf_event_attr *attr, struct err *err);

/* "cpu_core/cycles/": a generic event on one PMU of several. Linux 5.13 and later take the PMU's
 * number in the upper half of config; the ordinary CPU PMU is meant without it. */
static bool generic_on_pmu(const struct pmu *pmu, const char *term, struct perf_event_attr *attr)
{
	struct perf_event_attr named = {0};

	if (!event_name_find(term, &named) || named.type == PERF_TYPE_SOFTWARE)
		return false;
	attr->type = named.type;
	attr->config = named.config;
	if (pmu->type != PERF_TYPE_RAW)
		attr->config |= (uint64_t)pmu->type << 32;
	return true;
}

static bool raw_term(const char *term, uint64_t *value)
{
	char hex[2 + 17];

	if (term[0] != 'r' || strlen(term) < 2 || strlen(term) > 17)
		return false;
	snprintf(hex, sizeof(hex), "0x%s", term + 1);
	return event_number(hex, value);
}

static int apply_term(const struct pmu *pmu, const char *term, const char *text, int depth,
		      struct perf_event_attr *attr, struct err *err)
{
	char line[LINE];
	uint64_t value = 1;

	/* What the PMU itself calls so comes first. */
	if (!event_sysfs_read(pmu->sys, pmu->name, "format", term, line, LINE)) {
		int ret = event_term(term, text, attr, pmu->renamed, err);

		if (ret)
			return ret < 0 ? ret : 0;
	}
	if (!text && !is_annotation(term) &&
	    event_sysfs_read(pmu->sys, pmu->name, "events", term, line, LINE)) {
		if (depth >= ALIAS_DEPTH)
			return err_set(err, ERR_UNSUPPORTED, "the event '%s' of %s names itself",
				       term, pmu->name);
		return apply_terms(pmu, line, depth + 1, attr, err);
	}
	if (text && strcmp(text, "?") == 0) {
		int ret;

		if (depth && is_given(pmu->given, term))
			return 0;
		ret = err_set(err, ERR_USAGE, "the event needs a value for '%s'", term);
		err_hint(err, "%s/%s,%s=.../", pmu->name, pmu->given, term);
		return ret;
	}
	if (text && !event_number(text, &value))
		return err_set(err, ERR_USAGE, "'%s=%s' is not a number", term, text);
	if (event_sysfs_read(pmu->sys, pmu->name, "format", term, line, LINE))
		return put_bits(line, value, term, attr, err);
	if (text && strcmp(term, "config") == 0)
		attr->config = value;
	else if (text && strcmp(term, "config1") == 0)
		attr->config1 = value;
	else if (text && strcmp(term, "config2") == 0)
		attr->config2 = value;
	else if (!text && raw_term(term, &value))
		attr->config = value;
	else if (text || !generic_on_pmu(pmu, term, attr))
		return unknown_term(pmu, term, err);
	return 0;
}

static int apply_terms(const struct pmu *pmu, const char *terms, int depth,
		       struct perf_event_attr *attr, struct err *err)
{
	char *copy = strdup(terms), *rest = copy, *term;
	int ret = 0;

	if (!copy)
		return err_nomem(err);
	while (!ret && (term = strsep(&rest, ","))) {
		char *value = strchr(term, '=');

		if (value)
			*value++ = '\0';
		if (*term)
			ret = apply_term(pmu, term, value, depth, attr, err);
		else if (value)
			ret = err_set(err, ERR_USAGE, "a term without a name in '%s'", terms);
	}
	free(copy);
	return ret;
}

bool event_sysfs_type(const struct event_system *sys, const char *pmu, uint32_t *type)
{
	char line[32];
	uint64_t value;

	if (!event_sysfs_read(sys, pmu, "", "type", line, sizeof(line)) ||
	    !event_number(line, &value) || value > UINT32_MAX)
		return false;
	*type = (uint32_t)value;
	return true;
}

/* "this machine has breakpoint, msr, software" */
static int unknown_pmu(const struct event_system *sys, const char *pmu, struct err *err)
{
	int ret = err_set(err, ERR_USAGE, "this machine has no PMU named '%s'", pmu);
	struct strbuf names = {0};
	struct dirent *entry;
	DIR *dir = opendir(sys->devices);

	while (dir && (entry = readdir(dir)) && names.len < 300)
		if (entry->d_name[0] != '.')
			strbuf_printf(&names, "%s%s", names.len ? ", " : "", entry->d_name);
	if (dir)
		closedir(dir);
	if (names.len)
		err_hint(err, "it has %s", strbuf_text(&names));
	strbuf_fini(&names);
	return ret;
}

/* These write a stream of their own into a buffer apart, and no samples. `terms`: what is to be
 * switched on for us to read it; NULL where we do not. */
static const struct tracer {
	const char *prefix, *terms;
} tracers[] = {
	{"arm_spe", "ts_enable=1"}, {"intel_pt", NULL}, {"intel_bts", NULL},
	{"cs_etm", NULL},	    {"hisi_ptt", NULL},
};

static const struct tracer *find_tracer(const char *pmu)
{
	for (size_t i = 0; i < sizeof(tracers) / sizeof(tracers[0]); i++)
		if (strncmp(pmu, tracers[i].prefix, strlen(tracers[i].prefix)) == 0)
			return &tracers[i];
	return NULL;
}

bool event_sysfs_traces(const char *pmu)
{
	const struct tracer *tracer = find_tracer(pmu);

	return tracer && tracer->terms;
}

static int refuse_tracer(const char *pmu, struct err *err)
{
	err_set(err, ERR_UNSUPPORTED,
		"%s traces into a buffer of its own, which pyperf does not record", pmu);
	err_hint(err,
		 "perf record -e %s// -- COMMAND, then `perf inject --itrace -i perf.data -o OUT` "
		 "makes samples of the trace, which pyperf reads",
		 pmu);
	return ERR_UNSUPPORTED;
}

int event_sysfs_parse(const struct event_system *sys, const char *pmu, const char *terms,
		      struct perf_event_attr *attr, char **renamed, struct err *err)
{
	struct pmu on = {.sys = sys, .name = pmu, .given = terms, .renamed = renamed};
	const struct tracer *tracer;
	int ret = 0;

	*renamed = NULL;
	if (!event_sysfs_type(sys, pmu, &on.type))
		return unknown_pmu(sys, pmu, err);
	tracer = find_tracer(pmu);
	if (tracer && !tracer->terms)
		return refuse_tracer(pmu, err);
	attr->type = on.type;
	if (tracer)
		ret = apply_terms(&on, tracer->terms, 0, attr, err);
	if (!ret)
		ret = apply_terms(&on, terms, 0, attr, err);
	if (ret < 0) {
		free(*renamed);
		*renamed = NULL;
	}
	return ret;
}

bool event_sysfs_alias(const struct event_system *sys, const char *name,
		       struct perf_event_attr *attr)
{
	char line[LINE], first[NAME_MAX + 1] = "", *renamed = NULL;
	struct dirent *entry;
	DIR *dir = opendir(sys->devices);

	/* Of several PMUs the first by name, so the choice does not hang on the order of a folder.
	 */
	while (dir && !is_annotation(name) && (entry = readdir(dir)))
		if (event_sysfs_read(sys, entry->d_name, "events", name, line, sizeof(line)) &&
		    (!first[0] || strcmp(entry->d_name, first) < 0))
			snprintf(first, sizeof(first), "%s", entry->d_name);
	if (dir)
		closedir(dir);
	return first[0] && event_sysfs_parse(sys, first, name, attr, &renamed, NULL) == 0;
}

void event_sysfs_each(const struct event_system *sys, event_name_visit *visit, void *ctx)
{
	struct dirent *pmu, *event;
	DIR *pmus = opendir(sys->devices), *events;
	char path[PATH_MAX], name[2 * NAME_MAX + 4];
	bool more = true;

	while (pmus && more && (pmu = readdir(pmus))) {
		if (pmu->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/events", sys->devices, pmu->d_name);
		events = opendir(path);
		while (events && more && (event = readdir(events))) {
			if (event->d_name[0] == '.' || is_annotation(event->d_name))
				continue;
			snprintf(name, sizeof(name), "%s/%s/", pmu->d_name, event->d_name);
			more = visit(name, ctx) && visit(event->d_name, ctx);
		}
		if (events)
			closedir(events);
	}
	if (pmus)
		closedir(pmus);
}
