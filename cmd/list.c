#include "cmd/cmd.h"

#include "base/json_value.h"
#include "base/text.h"
#include "event/catalog.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define NAME_COLUMN 40
#define STATUS_COLUMN 20
#define WIDTH 110

static struct {
	int json;
} given;

const struct poptOption list_options[] = {
	{"json", '\0', POPT_ARG_NONE, &given.json, 0, "print JSON", NULL},
	POPT_TABLEEND,
};

static const char *const titles[] = {
	[CATALOG_HARDWARE] = "hardware events",
	[CATALOG_CACHE] = "hardware caches",
	[CATALOG_SOFTWARE] = "software events",
	[CATALOG_PMU] = "events of this machine's PMUs",
	[CATALOG_TRACEPOINT] = "tracepoints (they count when they are hit)",
	[CATALOG_LIBPFM] = "libpfm4's names for this processor",
};

static const char *const words[] = {
	[CATALOG_COUNTS] = "counts",
	[CATALOG_ZERO] = "opens, stays at 0",
	[CATALOG_NO_COUNTER] = "no counter free",
	[CATALOG_ABSENT] = "not here",
	[CATALOG_FORBIDDEN] = "not allowed",
	[CATALOG_UNTRIED] = "",
};

/* Names of libpfm4, sysfs and tracefs are not ours. */
static int put_safe(const char *text)
{
	struct strbuf safe = {0};
	int width;

	text_escape(&safe, text, strlen(text));
	width = printf("%s", strbuf_text(&safe));
	strbuf_fini(&safe);
	return width;
}

static void put_event(const struct catalog_event *event)
{
	const char *word = words[event->status];
	int width = printf("  ") + put_safe(event->name);

	if (event->aliases)
		width += printf(", %s", event->aliases);
	if (*word || event->text || (event->why && event->kind != CATALOG_TRACEPOINT)) {
		if (width + 1 >= NAME_COLUMN)
			width = printf("\n") - 1;
		width += printf("%*s%s%s", NAME_COLUMN - width, "", word,
				event->user_only && event->status != CATALOG_FORBIDDEN
					? " (user space)"
					: "");
	}
	if (event->text ||
	    (event->status == CATALOG_UNTRIED && event->kind != CATALOG_TRACEPOINT)) {
		struct strbuf safe = {0};
		const char *text = event->text ? event->text : event->why;

		text_escape(&safe, text, strlen(text));
		printf("%*s",
		       width < NAME_COLUMN + STATUS_COLUMN ? NAME_COLUMN + STATUS_COLUMN - width
							   : 1,
		       "");
		command_put_wrapped(stdout, strbuf_text(&safe), NAME_COLUMN + STATUS_COLUMN, WIDTH);
		strbuf_fini(&safe);
		return;
	}
	putchar('\n');
}

/* What is not here is one paragraph. */
static void put_absent(const struct catalog *catalog, size_t first, size_t end)
{
	struct strbuf names = {0};

	for (size_t i = first; i < end; i++) {
		const struct catalog_event *event = &catalog->events.items[i];

		if (event->status == CATALOG_ABSENT)
			strbuf_printf(&names, "%s%s", names.len ? ", " : "", event->name);
	}
	if (names.len) {
		printf("  not here: ");
		command_put_wrapped(stdout, strbuf_text(&names), 12, WIDTH);
	}
	strbuf_fini(&names);
}

static void put_section(const struct catalog *catalog, size_t first, size_t end)
{
	printf("%s%s\n", first ? "\n" : "", titles[catalog->events.items[first].kind]);
	for (size_t i = first; i < end; i++)
		if (catalog->events.items[i].status != CATALOG_ABSENT)
			put_event(&catalog->events.items[i]);
	put_absent(catalog, first, end);
}

static void put_pmus(const struct catalog *catalog)
{
	printf("\nPMUs: -e PMU/TERM=VALUE,.../\n");
	for (size_t i = 0; i < catalog->pmus.len; i++) {
		const struct catalog_pmu *pmu = &catalog->pmus.items[i];
		struct strbuf text = {0};
		int width = printf("  ") + put_safe(pmu->name);

		if (pmu->cpus)
			strbuf_printf(&text, "CPUs %s%s", pmu->cpus, pmu->terms ? ": " : "");
		strbuf_str(&text, pmu->terms ? pmu->terms : pmu->cpus ? "" : "no terms");
		printf("%*s", width < 16 ? 16 - width : 1, "");
		command_put_wrapped(stdout, strbuf_text(&text), 16, WIDTH);
		strbuf_fini(&text);
	}
}

static void put_models(const struct catalog *catalog)
{
	struct strbuf present = {0};
	size_t others = 0;

	for (size_t i = 0; i < catalog->models.len; i++) {
		const struct catalog_model *model = &catalog->models.items[i];

		if (!model->present) {
			others++;
			continue;
		}
		strbuf_printf(&present, "%s%s (%d events", present.len ? ", " : "", model->name,
			      model->events);
		if (model->counters)
			strbuf_printf(&present, ", %d+%d counters", model->counters,
				      model->fixed_counters);
		strbuf_char(&present, ')');
	}
	if (catalog->models.len)
		printf("\nlibpfm4 knows here %s, and %zu other processors: pyperf list skl:: has "
		       "the "
		       "events of one\n",
		       present.len ? strbuf_text(&present) : "no processor", others);
	strbuf_fini(&present);
}

static void put_footnotes(const struct catalog *catalog)
{
	bool zero = false, none = false, hidden = false;

	for (size_t i = 0; i < catalog->events.len; i++) {
		const struct catalog_event *event = &catalog->events.items[i];

		zero |= event->status == CATALOG_ZERO;
		none |= event->status == CATALOG_NO_COUNTER;
		hidden |= event->status == CATALOG_ABSENT && event->kind == CATALOG_HARDWARE &&
			  event->attr.config == PERF_COUNT_HW_CPU_CYCLES;
	}
	if (zero || none || hidden)
		putchar('\n');
	if (hidden)
		printf("no cycles: this machine shows no hardware counters, as most virtual "
		       "machines; pyperf record samples cpu-clock instead\n");
	if (zero)
		printf("stays at 0: while pyperf computed, missed caches, faulted pages and slept "
		       "for a moment; hardware events that do so count nothing here\n");
	if (none)
		printf("no counter free: others hold them, such as the NMI watchdog (sysctl "
		       "kernel.nmi_watchdog=0)\n");
}

static int put_screen(const struct catalog *catalog, const char *pattern)
{
	size_t end;

	for (size_t first = 0; first < catalog->events.len; first = end) {
		for (end = first; end < catalog->events.len; end++)
			if (catalog->events.items[end].kind != catalog->events.items[first].kind)
				break;
		put_section(catalog, first, end);
	}
	if (!pattern) {
		put_pmus(catalog);
		put_models(catalog);
	}
	put_footnotes(catalog);
	return 0;
}

/* "a, b" */
static json_t *names_value(const char *names)
{
	json_t *array = json_array();

	for (const char *at = names; at && *at;) {
		size_t len = strcspn(at, ",");

		json_array_append_new(array, json_stringn(at, len));
		at += len + strspn(at + len, ", ");
	}
	return array;
}

static json_t *event_value(const struct catalog_event *event)
{
	json_t *value = json_pack("{s:o, s:s, s:s, s:b, s:o, s:o, s:o}", "name",
				  json_of_text(event->name), "kind", catalog_kind_name(event->kind),
				  "status", catalog_status_name(event->status), "user_only",
				  event->user_only, "why", json_of_text(event->why), "aliases",
				  names_value(event->aliases), "text", json_of_text(event->text));

	if (value && event->status != CATALOG_UNTRIED)
		json_object_set_new(value, "attr",
				    json_pack("{s:I, s:I, s:I, s:I}", "type",
					      (json_int_t)event->attr.type, "config",
					      (json_int_t)event->attr.config, "config1",
					      (json_int_t)event->attr.config1, "config2",
					      (json_int_t)event->attr.config2));
	return value;
}

/* PMUs and processors where the whole machine is asked for. */
static int put_json(const struct catalog *catalog, bool whole)
{
	json_t *events = json_array(), *pmus = json_array(), *models = json_array(), *root;
	int rc = 0;

	for (size_t i = 0; i < catalog->events.len; i++)
		rc |= json_array_append_new(events, event_value(&catalog->events.items[i]));
	for (size_t i = 0; whole && i < catalog->pmus.len; i++) {
		const struct catalog_pmu *pmu = &catalog->pmus.items[i];

		rc |= json_array_append_new(pmus, json_pack("{s:o, s:I, s:o, s:o}", "name",
							    json_of_text(pmu->name), "type",
							    (json_int_t)pmu->type, "cpus",
							    json_of_text(pmu->cpus), "terms",
							    json_of_text(pmu->terms)));
	}
	for (size_t i = 0; whole && i < catalog->models.len; i++) {
		const struct catalog_model *model = &catalog->models.items[i];

		rc |= json_array_append_new(
			models,
			json_pack("{s:o, s:o, s:b, s:i, s:i, s:i}", "name",
				  json_of_text(model->name), "text", json_of_text(model->text),
				  "present", model->present, "events", model->events, "counters",
				  model->counters, "fixed_counters", model->fixed_counters));
	}
	root = json_pack("{s:i, s:o, s:o, s:o}", "version", 1, "events", events, "pmus", pmus,
			 "libpfm4", models);
	if (!root || rc || json_dumpf(root, stdout, JSON_INDENT(1)) < 0)
		rc = -1;
	else
		putchar('\n');
	json_decref(root);
	return rc;
}

int cmd_list(int argc, const char **argv)
{
	const struct command *command = command_find("list");
	struct catalog catalog = {0};
	struct err err = {0};
	poptContext context;
	const char *pattern;
	int status = 0;

	context = command_options(command, argc, argv, 0, &status);
	if (!context)
		return status;
	pattern = poptGetArg(context);
	if (poptPeekArg(context))
		status = command_usage(command, "one PATTERN at most");
	else if (catalog_read(&catalog, pattern, &err) < 0)
		status = command_fail(&err);
	else if (given.json)
		status = put_json(&catalog, !pattern) < 0 ? 1 : 0;
	else
		status = put_screen(&catalog, pattern);
	if (!status && !catalog.events.len && !given.json) {
		err_set(&err, ERR_NOT_FOUND, "no event here is like '%s'", pattern ? pattern : "");
		err_hint(&err, "pyperf list names them all; kinds are hardware, cache, software, "
			       "pmu, tracepoint and libpfm4");
		status = command_fail(&err);
	}
	catalog_fini(&catalog);
	poptFreeContext(context);
	return command_finish_output(status);
}
