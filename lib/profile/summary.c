#include "profile/store.h"

#include "base/strbuf.h"
#include "profile/objects.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/*
 * What a recording says of itself (META, or perf's own command line), and what its cells add up
 * to. META is read leniently: a key that is absent or of another type says nothing.
 */

#define INCOMPLETE_MAX 4096 /* rows that are believed */

static int keep(struct profile *profile, const char *text, const char **out, struct err *err)
{
	if (!text || !text[0])
		return 0;
	*out = profile_keep(profile, text);
	return *out ? 0 : err_nomem(err);
}

/* "CPython 3.12.1, 3.13.0": each version once. */
static void join_versions(const json_t *pythons, struct strbuf *out)
{
	const json_t *python;
	size_t i;

	json_array_foreach(pythons, i, python)
	{
		const char *version = json_string_value(json_object_get(python, "version"));
		const char *at = strbuf_text(out);
		bool known = false;

		if (!version || !version[0])
			continue;
		for (size_t len = strlen(version); !known && (at = strstr(at, version)); at += len)
			known = at[len] == '\0' || at[len] == ',';
		if (!known)
			strbuf_printf(out, "%s%s", out->len ? ", " : "CPython ", version);
	}
}

/* What was recorded: a command, or what ran already, perhaps as long as a command. */
static int join_target(struct profile *profile, const json_t *meta, struct err *err)
{
	const char *command = json_string_value(json_object_get(meta, "command"));
	const char *target = json_string_value(json_object_get(meta, "target"));
	struct strbuf words = {0};
	int rc;

	if (!target)
		return keep(profile, command, &profile->summary.command, err);
	strbuf_printf(&words, "attached to %s%s%s", target, command ? " during " : "",
		      command ? command : "");
	rc = strbuf_failed(&words)
		     ? err_nomem(err)
		     : keep(profile, strbuf_text(&words), &profile->summary.command, err);
	strbuf_fini(&words);
	return rc;
}

static uint64_t count_of(const json_t *object, const char *key)
{
	json_int_t count = json_integer_value(json_object_get(object, key));

	return count > 0 ? (uint64_t)count : 0;
}

/* What became of the native stacks that the recorder unwound. */
static int read_stacks(struct profile *profile, const json_t *stacks, struct err *err)
{
	const json_t *row;
	size_t i;

	profile->summary.unwound += count_of(stacks, "samples");
	profile->summary.unwound_whole += count_of(stacks, "complete");
	json_array_foreach(json_object_get(stacks, "incomplete"), i, row)
	{
		const char *reason = json_string_value(json_object_get(row, "reason"));
		const char *object = json_string_value(json_object_get(row, "object"));

		if (i < INCOMPLETE_MAX && reason && object &&
		    !profile_add_incomplete(profile, reason, object, count_of(row, "samples")))
			return err_nomem(err);
	}
	return 0;
}

static int by_samples(const void *a, const void *b)
{
	const struct profile_incomplete *x = a, *y = b;

	return (x->samples < y->samples) - (x->samples > y->samples);
}

/* What the kernel counted in all; a group's events ran as long as their counters did. */
static void read_counts(struct profile *profile, const json_t *counts)
{
	const json_t *row;
	size_t i;

	json_array_foreach(counts, i, row)
	{
		json_int_t index = json_integer_value(json_object_get(row, "event"));
		uint64_t enabled = count_of(row, "enabled_ns"),
			 running = count_of(row, "running_ns");
		struct profile_event *event;

		if (index < 0 || (uint64_t)index >= profile->events.len ||
		    !json_is_integer(json_object_get(row, "event")) || (enabled && !running))
			continue;
		event = &profile->events.items[index];
		event->exact = true;
		event->exact_total = (double)count_of(row, "value");
		if (!running)
			continue;
		event->exact_total *= (double)enabled / (double)running;
		event->enabled_ns = enabled;
		event->running_ns = running;
	}
}

static int read_json(struct profile *profile, struct bytes text, struct err *err)
{
	struct profile_summary *summary = &profile->summary;
	json_t *meta = json_loadb((const char *)text.at, bytes_left(&text), 0, NULL);
	struct strbuf versions = {0};
	json_int_t lost;
	int rc;

	if (!meta) {
		summary->malformed++;
		return 0;
	}
	join_versions(json_object_get(meta, "pythons"), &versions);
	rc = strbuf_failed(&versions)
		     ? err_nomem(err)
		     : keep(profile, strbuf_text(&versions), &summary->python_version, err);
	strbuf_fini(&versions);
	if (rc == 0)
		rc = join_target(profile, meta, err);
	if (rc == 0)
		rc = keep(profile, json_string_value(json_object_get(meta, "engine")),
			  &summary->engine, err);
	summary->rate_cut = json_number_value(json_object_get(meta, "rate_cut"));
	if (json_integer_value(json_object_get(meta, "not_stopped")) > 0)
		summary->not_stopped = (uint64_t)json_integer_value(
			json_object_get(meta, "not_stopped"));
	if (rc == 0)
		rc = read_stacks(profile, json_object_get(meta, "stacks"), err);
	read_counts(profile, json_object_get(meta, "counts"));
	lost = json_integer_value(json_object_get(meta, "lost"));
	if (lost > 0)
		profile->meta_lost = (uint64_t)lost;
	json_decref(meta);
	return rc;
}

/* perf keeps its own command line: what follows "--", or all of it. */
static int join_cmdline(struct profile *profile, const struct data_info *info, struct err *err)
{
	struct strbuf command = {0};
	size_t first = 0;
	int rc;

	for (size_t i = 0; i < info->cmdline_len && !first; i++)
		if (!strcmp(info->cmdline[i], "--"))
			first = i + 1;
	for (size_t i = first; i < info->cmdline_len; i++)
		strbuf_printf(&command, "%s%s", i > first ? " " : "", info->cmdline[i]);
	rc = strbuf_failed(&command)
		     ? err_nomem(err)
		     : keep(profile, strbuf_text(&command), &profile->summary.command, err);
	strbuf_fini(&command);
	return rc;
}

int profile_read_meta(struct profile *profile, struct data_file *file, struct err *err)
{
	struct bytes meta = data_section(file, DATA_SECTION_META);
	int rc = bytes_left(&meta) ? read_json(profile, meta, err) : 0;

	if (rc == 0 && !profile->summary.command)
		rc = join_cmdline(profile, data_info(file), err);
	return rc;
}

/* What the summary asks of a stack; a parent's facts come before its children's. */
struct stack_facts {
	uint32_t python;      /* innermost Python frame; UINT32_MAX without one */
	bool unreadable_code; /* anywhere */
};

static struct stack_facts *find_facts(const struct profile *profile)
{
	struct stack_facts *facts = malloc(profile->stacks.nodes.len * sizeof(*facts));

	if (!facts)
		return NULL;
	facts[0] = (struct stack_facts){.python = UINT32_MAX};
	for (uint32_t i = 1; i < profile->stacks.nodes.len; i++) {
		const struct profile_stack *stack = profile_stack(profile, i);
		const struct frame_item *item = profile_frame_item(profile, stack->frame);
		const struct profile_function *function = profile_function(profile,
									   item->frame.function);

		facts[i] = facts[stack->parent];
		if (function->kind != FRAME_PYTHON)
			continue;
		facts[i].python = stack->frame;
		facts[i].unreadable_code |= item->unreadable;
	}
	return facts;
}

static void add_cell(struct profile *profile, const struct profile_cell *cell,
		     const struct stack_facts *facts)
{
	struct profile_summary *summary = &profile->summary;
	const struct profile_stack *stack = profile_stack(profile, cell->stack);
	bool user, line;

	if (cell->stack == 0)
		return;
	user = profile_function(profile, profile_frame(profile, stack->frame)->function)->kind !=
	       FRAME_KERNEL;
	line = facts->python != UINT32_MAX && profile_frame(profile, facts->python)->line;
	summary->user_samples += user ? cell->samples : 0;
	summary->python += facts->python != UINT32_MAX ? cell->samples : 0;
	summary->python_lines += line ? cell->samples : 0;
	summary->user_python_lines += user && line ? cell->samples : 0;
	summary->unresolved_code += facts->unreadable_code ? cell->samples : 0;
}

static int count_threads(struct profile *profile, struct err *err)
{
	struct keyed ids;
	int rc = 0;

	/* A thread that was renamed has several entries. */
	keyed_init(&ids, 2 * sizeof(uint32_t), 2 * sizeof(uint32_t));
	for (uint32_t i = 0; i < profile->threads.count && rc == 0; i++)
		if (keyed_add(&ids, profile_thread(profile, i), NULL) == KEYED_NONE)
			rc = err_nomem(err);
	profile->summary.threads = ids.count;
	keyed_fini(&ids);
	return rc;
}

int profile_summarise(struct profile *profile, struct err *err)
{
	struct profile_summary *summary = &profile->summary;
	struct stack_facts *facts = find_facts(profile);

	if (!facts)
		return err_nomem(err);
	for (uint32_t i = 0; i < profile->cells.count; i++) {
		const struct profile_cell *cell = profile_cell(profile, i);

		add_cell(profile, cell, &facts[cell->stack]);
	}
	free(facts);
	if (profile->incomplete.len)
		qsort(profile->incomplete.items, profile->incomplete.len,
		      sizeof(profile->incomplete.items[0]), by_samples);
	/* The recorder's count includes what the records tell, and what it lost itself. */
	if (profile->meta_lost > summary->lost)
		summary->lost = profile->meta_lost;
	for (size_t i = 0; i < profile->events.len; i++)
		if (profile->events.items[i].sampled)
			profile->events.items[i].lost = summary->lost;
	for (uint32_t i = 0; i < profile->frames.count && !summary->engine; i++)
		if (profile_frame_item(profile, i)->key.origin == ORIGIN_TRAMPOLINE)
			summary->engine = "trampoline";
	summary->replaced_objects = objects_replaced(profile->objects);
	return count_threads(profile, err);
}
