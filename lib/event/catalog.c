#include "event/catalog.h"

#include "base/io.h"
#include "event/internal.h"
#include "event/pfm.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kind_names[] = {
	[CATALOG_HARDWARE] = "hardware",     [CATALOG_CACHE] = "cache",
	[CATALOG_SOFTWARE] = "software",     [CATALOG_PMU] = "pmu",
	[CATALOG_TRACEPOINT] = "tracepoint", [CATALOG_LIBPFM] = "libpfm4",
};
static const char *const status_names[] = {
	[CATALOG_COUNTS] = "counts",	     [CATALOG_ZERO] = "zero",
	[CATALOG_NO_COUNTER] = "no_counter", [CATALOG_ABSENT] = "absent",
	[CATALOG_FORBIDDEN] = "forbidden",   [CATALOG_UNTRIED] = "untried",
};

const char *catalog_kind_name(enum catalog_kind kind)
{
	return kind_names[kind];
}

const char *catalog_status_name(enum catalog_status status)
{
	return status_names[status];
}

/* What the visitors of names share. */
struct reading {
	const struct event_system *sys;
	struct catalog *catalog;
	const char *pattern;
	enum catalog_kind kind;
	bool failed; /* memory ran out */
};

static void event_fini(struct catalog_event *event)
{
	free(event->name);
	free(event->aliases);
	free(event->text);
	free(event->why);
}

static bool matches(const struct reading *r, const char *name, const char *text)
{
	if (!r->pattern || strcmp(r->pattern, kind_names[r->kind]) == 0)
		return true;
	if (strpbrk(r->pattern, "*?["))
		return fnmatch(r->pattern, name, FNM_CASEFOLD) == 0;
	return strcasestr(name, r->pattern) || (text && strcasestr(text, r->pattern));
}

/* The attr of a name, or why it has none. */
static bool resolve(const struct reading *r, struct catalog_event *event)
{
	struct event_list list = {0};
	struct err err = {0};
	int ret = event_parse_on(r->sys, &list, event->name, &err);

	if (!ret)
		event->attr = list.items[0].attr;
	else
		event->why = strdup(err.text);
	event_list_fini(&list);
	return !ret;
}

/* Two names of one event become one. */
static struct catalog_event *find_twin(const struct reading *r, const struct catalog_event *event)
{
	for (size_t i = 0; i < r->catalog->events.len; i++) {
		struct catalog_event *other = &r->catalog->events.items[i];

		if (other->kind == event->kind && other->attr.type == event->attr.type &&
		    other->attr.config == event->attr.config)
			return other;
	}
	return NULL;
}

static bool add_alias(struct catalog_event *event, const char *name)
{
	char *aliases;

	if (asprintf(&aliases, "%s%s%s", event->aliases ? event->aliases : "",
		     event->aliases ? ", " : "", name) < 0)
		return false;
	free(event->aliases);
	event->aliases = aliases;
	return true;
}

static bool add(struct reading *r, struct catalog_event event, bool found)
{
	bool generic = r->kind <= CATALOG_SOFTWARE;
	struct catalog_event *twin = generic && found ? find_twin(r, &event) : NULL, *slot;

	if (twin) {
		r->failed |= !add_alias(twin, event.name);
		event_fini(&event);
		return !r->failed;
	}
	slot = vec_push(&r->catalog->events);
	r->failed |= !slot;
	if (slot)
		*slot = event;
	else
		event_fini(&event);
	return !r->failed;
}

static bool visit_generic(const char *name, void *ctx)
{
	struct reading *r = ctx;
	struct catalog_event event = {.name = strdup(name), .status = CATALOG_UNTRIED};

	if (!event.name || !event_name_find(name, &event.attr)) {
		free(event.name);
		r->failed = true;
		return false;
	}
	event.kind = event.attr.type == PERF_TYPE_SOFTWARE   ? CATALOG_SOFTWARE
		     : event.attr.type == PERF_TYPE_HW_CACHE ? CATALOG_CACHE
							     : CATALOG_HARDWARE;
	if (event.kind == r->kind)
		return add(r, event, true);
	free(event.name);
	return true;
}

/* Of aliases or names one must match; they are known only when all were visited. */
static void drop_unwanted(struct reading *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->catalog->events.len; i++) {
		struct catalog_event *event = &r->catalog->events.items[i];

		r->kind = event->kind;
		if (matches(r, event->name, event->aliases))
			r->catalog->events.items[kept++] = *event;
		else
			event_fini(event);
	}
	r->catalog->events.len = kept;
}

/* "cpu/cache-misses/": event_sysfs_each() also gives the name without its PMU. */
static bool visit_sysfs(const char *name, void *ctx)
{
	struct reading *r = ctx;
	struct catalog_event event = {.kind = CATALOG_PMU, .status = CATALOG_UNTRIED};
	bool found;

	if (!strchr(name, '/') || !matches(r, name, NULL))
		return true;
	event.name = strdup(name);
	r->failed |= !event.name;
	if (r->failed)
		return false;
	found = resolve(r, &event);
	return add(r, event, found);
}

static bool visit_tracepoint(const char *name, void *ctx)
{
	struct reading *r = ctx;
	struct catalog_event event = {.kind = CATALOG_TRACEPOINT, .status = CATALOG_UNTRIED};

	if (!matches(r, name, NULL))
		return true;
	event.name = strdup(name);
	event.why = strdup("it counts when it is hit");
	event.attr.type = PERF_TYPE_TRACEPOINT;
	r->failed |= !event.name || !event.why;
	return add(r, event, false);
}

static bool visit_pfm(const char *name, const char *text, bool present, void *ctx)
{
	struct reading *r = ctx;
	struct catalog_event event = {.kind = CATALOG_LIBPFM, .status = CATALOG_UNTRIED};

	if (!matches(r, name, text))
		return true;
	event.name = strdup(name);
	event.text = text ? strdup(text) : NULL;
	r->failed |= !event.name;
	if (r->failed)
		return false;
	if (!present)
		event.why = strdup("it is another processor's");
	else
		event_pfm_parse(name, &event.attr, sizeof(event.attr), NULL);
	return add(r, event, present);
}

static bool visit_model(const struct pfm_model *model, void *ctx)
{
	struct reading *r = ctx;
	struct catalog_model *slot = vec_push(&r->catalog->models);

	r->failed |= !slot;
	if (slot)
		*slot = (struct catalog_model){
			.name = model->name,
			.text = model->text,
			.events = model->events,
			.counters = model->counters,
			.fixed_counters = model->fixed_counters,
			.present = model->present,
		};
	return !r->failed;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The files of a PMU's format folder, as "term=bits ...". */
static char *read_terms(const char *folder)
{
	struct {
		VEC_OF(char *)
	} terms = {0};
	struct strbuf text = {0};
	struct dirent *entry;
	DIR *dir = opendir(folder);

	while (dir && (entry = readdir(dir))) {
		char path[PATH_MAX], bits[128], *term, **slot;

		if (entry->d_name[0] == '.' ||
		    (size_t)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >=
			    sizeof(path) ||
		    io_read_line(path, bits, sizeof(bits), NULL) < 0 ||
		    asprintf(&term, "%s=%s", entry->d_name, bits) < 0)
			continue;
		slot = vec_push(&terms);
		if (slot)
			*slot = term;
		else
			free(term);
	}
	if (dir)
		closedir(dir);
	if (terms.len)
		qsort(terms.items, terms.len, sizeof(*terms.items), by_text);
	for (size_t i = 0; i < terms.len; i++) {
		strbuf_printf(&text, "%s%s", i ? " " : "", terms.items[i]);
		free(terms.items[i]);
	}
	vec_fini(&terms);
	return strbuf_detach(&text, NULL);
}

static bool read_pmu(struct catalog *catalog, const char *devices, const char *name)
{
	struct catalog_pmu *pmu = vec_push(&catalog->pmus);
	char path[PATH_MAX], line[256];

	if (!pmu)
		return false;
	pmu->name = strdup(name);
	snprintf(path, sizeof(path), "%s/%s/type", devices, name);
	if (io_read_line(path, line, sizeof(line), NULL) > 0)
		pmu->type = (uint32_t)strtoul(line, NULL, 10);
	snprintf(path, sizeof(path), "%s/%s/cpus", devices, name);
	if (io_read_line(path, line, sizeof(line), NULL) > 0)
		pmu->cpus = strdup(line);
	snprintf(path, sizeof(path), "%s/%s/format", devices, name);
	pmu->terms = read_terms(path);
	return pmu->name;
}

static int pmus_by_name(const void *a, const void *b)
{
	return strcmp(((const struct catalog_pmu *)a)->name, ((const struct catalog_pmu *)b)->name);
}

static bool read_pmus(struct reading *r)
{
	struct dirent *entry;
	DIR *dir = opendir(r->sys->devices);

	while (dir && !r->failed && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			r->failed |= !read_pmu(r->catalog, r->sys->devices, entry->d_name);
	if (dir)
		closedir(dir);
	if (r->catalog->pmus.len && !r->failed)
		qsort(r->catalog->pmus.items, r->catalog->pmus.len, sizeof(struct catalog_pmu),
		      pmus_by_name);
	return !r->failed;
}

/* Generic events keep the order of their table, in which related ones stand together. */
static int events_by_name(const void *a, const void *b)
{
	const struct catalog_event *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void sort_from(struct catalog *catalog, size_t first)
{
	if (catalog->events.len > first)
		qsort(&catalog->events.items[first], catalog->events.len - first,
		      sizeof(struct catalog_event), events_by_name);
}

int catalog_read_on(const struct event_system *sys, struct catalog *catalog, const char *pattern,
		    struct err *err)
{
	struct reading r = {.sys = sys, .catalog = catalog, .pattern = pattern};
	const char *colons = pattern ? strstr(pattern, "::") : NULL;
	size_t first;

	*catalog = (struct catalog){0};
	for (r.kind = CATALOG_HARDWARE; !r.failed && r.kind <= CATALOG_SOFTWARE; r.kind++)
		event_name_each(visit_generic, &r);
	drop_unwanted(&r);
	for (r.kind = CATALOG_PMU; !r.failed && r.kind < CATALOG_KINDS; r.kind++) {
		first = catalog->events.len;
		if (r.kind == CATALOG_PMU)
			event_sysfs_each(sys, visit_sysfs, &r);
		else if (r.kind == CATALOG_TRACEPOINT)
			event_tracepoint_each(sys, visit_tracepoint, &r);
		else
			event_pfm_list(pattern, colons ? (size_t)(colons - pattern) : 0, visit_pfm,
				       &r);
		sort_from(catalog, first);
	}
	if (!r.failed && read_pmus(&r))
		event_pfm_models(visit_model, &r);
	if (!r.failed)
		catalog_try(sys, catalog);
	if (!r.failed)
		return 0;
	catalog_fini(catalog);
	return err_nomem(err);
}

int catalog_read(struct catalog *catalog, const char *pattern, struct err *err)
{
	return catalog_read_on(&event_system_host, catalog, pattern, err);
}

void catalog_fini(struct catalog *catalog)
{
	if (!catalog)
		return;
	for (size_t i = 0; i < catalog->events.len; i++)
		event_fini(&catalog->events.items[i]);
	for (size_t i = 0; i < catalog->pmus.len; i++) {
		free(catalog->pmus.items[i].name);
		free(catalog->pmus.items[i].cpus);
		free(catalog->pmus.items[i].terms);
	}
	vec_fini(&catalog->events);
	vec_fini(&catalog->pmus);
	vec_fini(&catalog->models);
}
