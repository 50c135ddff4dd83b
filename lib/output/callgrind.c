#include "output/export.h"
#include "output/fold.h"
#include "output/names.h"

#include "profile/tally.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * The profile format of callgrind: for each function its lines with their own cost, then its calls
 * with the cost of what was called. Calls cannot be counted by samples, so as many are given as
 * samples were seen below them.
 *
 * Costs below a call are summed where the call is next to the root of a stack only, so that a
 * recursion counts once.
 */
struct site {
	uint32_t place, callee; /* index of folds.places; function */
};

struct callgrind {
	const struct export_options *options;
	struct folds folds;
	struct names *names;
	struct map known_sites;
	struct {
		VEC_OF(struct site)
	} sites;
	uint32_t *self_row, *call_row;	    /* by stack of the profile */
	struct view_count *selves, *calls;  /* rows * events */
	uint64_t *totals, *samples;	    /* by event */
	uint32_t *places, *place_ends;	    /* places by function */
	uint32_t *site_order, *site_starts; /* sites by place */
	struct strbuf text;
};

static int number_rows(struct callgrind *c, struct err *err)
{
	size_t count = profile_stack_count(c->options->profile);

	c->self_row = malloc((count + 1) * sizeof(*c->self_row));
	c->call_row = malloc((count + 1) * sizeof(*c->call_row));
	if (!c->self_row || !c->call_row)
		return err_nomem(err);
	c->self_row[0] = c->call_row[0] = ROW_NONE;
	for (uint32_t i = 1; i < count; i++) {
		const struct fold *fold = &c->folds.tree.items[c->folds.of_stack[i]];
		uint32_t callee = folds_function(&c->folds, c->folds.of_stack[i]);
		struct site *site;
		uint64_t *slot;
		bool added;

		c->self_row[i] = fold->place;
		c->call_row[i] = ROW_NONE;
		if (!fold->parent)
			continue;
		slot = map_put(&c->known_sites,
			       (uint64_t)c->folds.tree.items[fold->parent].place << 32 | callee,
			       &added);
		if (!slot)
			return err_nomem(err);
		if (added) {
			*slot = c->sites.len;
			site = vec_push(&c->sites);
			if (!site)
				return err_nomem(err);
			*site = (struct site){c->folds.tree.items[fold->parent].place, callee};
		}
		c->call_row[i] = (uint32_t)*slot;
	}
	return 0;
}

static int sum(struct callgrind *c, struct err *err)
{
	size_t events = profile_event_count(c->options->profile);
	struct tally tally = {.profile = c->options->profile, .filter = c->options->filter};
	int rc;

	c->selves = calloc((c->folds.places.len + 1) * events, sizeof(*c->selves));
	c->calls = calloc((c->sites.len + 1) * events, sizeof(*c->calls));
	c->totals = calloc(events + 1, sizeof(*c->totals));
	c->samples = calloc(events + 1, sizeof(*c->samples));
	if (!c->selves || !c->calls || !c->totals || !c->samples)
		return err_nomem(err);
	tally.self_row = c->self_row;
	tally.rows = (uint32_t)c->folds.places.len;
	tally.counts = c->selves;
	tally.period_total = c->totals;
	tally.samples = c->samples;
	rc = tally_run(&tally, err);
	if (rc)
		return rc;
	tally = (struct tally){
		.profile = tally.profile,
		.filter = tally.filter,
		.total_row = c->call_row,
		.rows = (uint32_t)c->sites.len,
		.counts = c->calls,
	};
	return tally_run(&tally, err);
}

/* Places by their function, sites by their place: a counting sort each. */
static int sort(struct callgrind *c, struct err *err)
{
	size_t functions = profile_function_count(c->options->profile);
	size_t places = c->folds.places.len, sites = c->sites.len;

	c->places = malloc((places + 1) * sizeof(*c->places));
	c->place_ends = calloc(functions + 2, sizeof(*c->place_ends));
	c->site_order = malloc((sites + 1) * sizeof(*c->site_order));
	c->site_starts = calloc(places + 2, sizeof(*c->site_starts));
	if (!c->places || !c->place_ends || !c->site_order || !c->site_starts)
		return err_nomem(err);
	for (size_t i = 0; i < places; i++)
		c->place_ends[c->folds.places.items[i].function + 1]++;
	for (size_t i = 1; i <= functions; i++)
		c->place_ends[i] += c->place_ends[i - 1];
	for (uint32_t i = 0; i < places; i++)
		c->places[c->place_ends[c->folds.places.items[i].function]++] = i;
	for (size_t i = 0; i < sites; i++)
		c->site_starts[c->sites.items[i].place + 2]++;
	for (size_t i = 2; i <= places + 1; i++)
		c->site_starts[i] += c->site_starts[i - 1];
	for (uint32_t i = 0; i < sites; i++)
		c->site_order[c->site_starts[c->sites.items[i].place + 1]++] = i;
	return 0;
}

/* ob=, fl= and fn=, or their forms for a callee. */
static void add_function(struct callgrind *c, uint32_t function, const char *prefix)
{
	const struct profile *profile = c->options->profile;
	const struct profile_function *f = profile_function(profile, function);
	bool python = f->kind == FRAME_PYTHON;

	strbuf_printf(&c->text, "%sob=", prefix);
	names_add_text(&c->text, python ? "[python]" : profile_text(profile, f->file));
	/* callgrind_annotate takes cfi= and cfl= alike; KCachegrind's own files have cfi=. */
	strbuf_printf(&c->text, "\n%s=", prefix[0] ? "cfi" : "fl");
	names_add_text(&c->text, python ? profile_text(profile, f->file) : "???");
	strbuf_printf(&c->text, "\n%sfn=", prefix);
	names_add_text(&c->text, export_function_name(profile, function));
	strbuf_char(&c->text, '\n');
}

static bool any_samples(const struct callgrind *c, const struct view_count *counts)
{
	for (uint32_t e = 0; e < profile_event_count(c->options->profile); e++)
		if (export_has_event(c->options, e) &&
		    (counts[e].self_samples || counts[e].total_samples))
			return true;
	return false;
}

/* "LINE COST..." in the order of the head. */
static void add_costs(struct callgrind *c, uint32_t line, const struct view_count *counts)
{
	strbuf_printf(&c->text, "%" PRIu32, line);
	for (uint32_t e = 0; e < profile_event_count(c->options->profile); e++) {
		const struct view_count *count = &counts[e];

		if (!export_has_event(c->options, e))
			continue;
		strbuf_printf(&c->text, " %" PRIu64,
			      c->options->by_period ? count->self + count->total
						    : count->self_samples + count->total_samples);
	}
	strbuf_char(&c->text, '\n');
}

static void add_calls(struct callgrind *c, uint32_t place)
{
	size_t events = profile_event_count(c->options->profile);

	for (uint32_t i = c->site_starts[place]; i < c->site_starts[place + 1]; i++) {
		const struct site *site = &c->sites.items[c->site_order[i]];
		const struct view_count *counts = &c->calls[c->site_order[i] * events];
		uint64_t samples = 0;

		if (!any_samples(c, counts))
			continue;
		for (size_t e = 0; e < events; e++)
			samples += counts[e].total_samples;
		add_function(c, site->callee, "c");
		strbuf_printf(&c->text, "calls=%" PRIu64 " %" PRIu32 "\n", samples,
			      profile_function(c->options->profile, site->callee)->line);
		add_costs(c, c->folds.places.items[place].line, counts);
	}
}

static void put_functions(FILE *out, struct callgrind *c)
{
	size_t events = profile_event_count(c->options->profile);
	uint32_t at = 0;

	for (uint32_t f = 0; f < profile_function_count(c->options->profile); f++) {
		if (at == c->place_ends[f])
			continue;
		strbuf_char(&c->text, '\n');
		add_function(c, f, "");
		for (; at < c->place_ends[f]; at++) {
			uint32_t place = c->places[at];

			if (any_samples(c, &c->selves[place * events]))
				add_costs(c, c->folds.places.items[place].line,
					  &c->selves[place * events]);
			add_calls(c, place);
		}
		fwrite(c->text.buf, 1, c->text.len, out);
		strbuf_reset(&c->text);
	}
}

/* Names of events are one word there. */
static void add_event_word(struct strbuf *out, const char *name)
{
	size_t start = out->len;

	names_add_text(out, name);
	for (size_t i = start; i < out->len; i++)
		if (out->buf[i] == ' ' || out->buf[i] == '=')
			out->buf[i] = '_';
}

static void put_head(FILE *out, struct callgrind *c)
{
	const struct profile *profile = c->options->profile;
	const char *command = profile_summary(profile)->command;
	struct strbuf totals = {0};

	strbuf_str(&c->text,
		   "# callgrind format\nversion: 1\ncreator: pyperf-" PYPERF_VERSION "\n");
	if (command) {
		strbuf_str(&c->text, "cmd: ");
		names_add_text(&c->text, command);
		strbuf_char(&c->text, '\n');
	}
	strbuf_str(&c->text, "positions: line\nevents:");
	strbuf_str(&totals, "summary:");
	for (uint32_t e = 0; e < profile_event_count(profile); e++) {
		if (!export_has_event(c->options, e))
			continue;
		strbuf_char(&c->text, ' ');
		add_event_word(&c->text, names_event(c->names, e));
		strbuf_printf(&totals, " %" PRIu64,
			      c->options->by_period ? c->totals[e] : c->samples[e]);
	}
	strbuf_printf(&c->text, "\n%s\n", strbuf_text(&totals));
	if (strbuf_failed(&totals))
		c->text.failed = 1;
	strbuf_fini(&totals);
}

int export_callgrind(FILE *out, const struct export_options *options, struct err *err)
{
	struct callgrind c = {.options = options};
	int rc = folds_init(&c.folds, options->profile, true, err);

	if (!rc)
		rc = names_new(&c.names, options->profile, err);
	if (!rc)
		rc = number_rows(&c, err);
	if (!rc)
		rc = sum(&c, err);
	if (!rc)
		rc = sort(&c, err);
	if (!rc) {
		put_head(out, &c);
		put_functions(out, &c);
	}
	if (!rc && strbuf_failed(&c.text))
		rc = err_nomem(err);
	strbuf_fini(&c.text);
	free(c.places);
	free(c.place_ends);
	free(c.site_order);
	free(c.site_starts);
	free(c.selves);
	free(c.calls);
	free(c.totals);
	free(c.samples);
	free(c.self_row);
	free(c.call_row);
	vec_fini(&c.sites);
	map_fini(&c.known_sites);
	names_free(c.names);
	folds_fini(&c.folds);
	return rc;
}
