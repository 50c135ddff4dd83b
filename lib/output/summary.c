#include "output/summary.h"

#include "base/text.h"
#include "output/figure.h"
#include "profile/origin.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#define GAPS_SAID 0.02 /* the last sample is always a little before the end */

/* A count of the summary that should be 0, and what it means when it is not. */
struct loss {
	size_t offset;
	bool callers;		/* touches callers only */
	const char *one, *many; /* "record was ...", "records were ..." */
	const char *more;	/* what follows from it, or what to do */
};
#define LOSS(field) offsetof(struct profile_summary, field)

static const struct loss losses[] = {
	{LOSS(lost), false, "record was lost: the kernel's buffers were full",
	 "records were lost: the kernel's buffers were full",
	 "record with larger buffers (-m) or less often (-F)"},
	{LOSS(unresolved_code), false, "sample ran Python code that could not be read",
	 "samples ran Python code that could not be read", "their functions have no name"},
	{LOSS(not_stopped), false, "sample's thread could not be stopped to read its Python frames",
	 "samples' threads could not be stopped to read their Python frames", NULL},
	{LOSS(faulted), true, "Python stack ends early: memory was not readable at the sample",
	 "Python stacks end early: memory was not readable at the sample", NULL},
	{LOSS(torn), true, "Python stack ends early: its frames led nowhere at the sample",
	 "Python stacks end early: their frames led nowhere at the sample",
	 "interpreters leave them so for some instructions of a call or a yield"},
	{LOSS(truncated), true, "Python stack is deeper than is recorded",
	 "Python stacks are deeper than is recorded",
	 "totals of their outermost callers are too small"},
	{LOSS(dropped_native), true,
	 "sample has an incomplete native stack: code without frame pointers",
	 "samples have incomplete native stacks: code without frame pointers",
	 "totals of native callers are too small"},
	{LOSS(dropped_calls), true,
	 "sample has an incomplete native stack: more calls than the CPU remembers",
	 "samples have incomplete native stacks: more calls than the CPU remembers",
	 "totals of native callers are too small"},
	{LOSS(unpaired), false, "Python stack belongs to no sample",
	 "Python stacks belong to no sample", NULL},
	{LOSS(reads_dropped), false, "read of a group of counters goes backwards or makes no sense",
	 "reads of groups of counters go backwards or make no sense",
	 "what they counted is left out"},
	{LOSS(reads_idle), false,
	 "sample's group of counters had not run since the sample before, for others used them",
	 "samples' groups of counters had not run since the sample before, for others used them",
	 "fewer events at a time (-e) leave no such gaps"},
	{LOSS(reads_throttled), false,
	 "sample's group of counters was throttled for nearly all of the time before it",
	 "samples' groups of counters were throttled for nearly all of the time before them",
	 "what they counted is left out; sample less often (-F, -c)"},
	{LOSS(malformed), false, "record breaks its own format and was left out",
	 "records break their own format and were left out", NULL},
	{LOSS(trace_broken), false, "record of the trace is cut or makes no sense and was left out",
	 "records of the trace are cut or make no sense and were left out", NULL},
	{LOSS(trace_truncated), false, "piece of the trace was cut: its buffer was full",
	 "pieces of the trace were cut: its buffer was full",
	 "record with a larger buffer (perf record -m ,PAGES) or less often (-c)"},
	{LOSS(trace_gaps), false, "piece of the trace has gaps", "pieces of the trace have gaps",
	 "samples are missing there"},
	{LOSS(trace_collisions), false,
	 "piece of the trace lacks samples that were due while another was not over",
	 "pieces of the trace lack samples that were due while another was not over",
	 "sample less often (-c)"},
	{LOSS(jit_skipped), false, "entry of a perf map or jitdump makes no sense and was left out",
	 "entries of perf maps or jitdumps make no sense and were left out", NULL},
	{LOSS(replaced_objects), true,
	 "file is another build here than was recorded: replaced since, or another machine's",
	 "files are other builds here than were recorded: replaced since, or another machine's",
	 "their native functions have no names"},
	{LOSS(late), true, "record came out of its order in time",
	 "records came out of their order in time",
	 "code near them may be attributed to older mappings"},
};

static void put(FILE *out, const char *text)
{
	struct strbuf safe = {0};

	names_add_text(&safe, text);
	fputs(strbuf_text(&safe), out);
	strbuf_fini(&safe);
}

static void put_count(FILE *out, uint64_t count)
{
	char text[32];

	text_count(text, sizeof(text), count);
	fputs(text, out);
}

static void put_duration(FILE *out, uint64_t ns)
{
	double seconds = (double)ns / 1e9;

	if (seconds >= 120)
		fprintf(out, "%.0f min %.0f s", (double)((uint64_t)seconds / 60),
			(double)((uint64_t)seconds % 60));
	else if (seconds >= 1)
		fprintf(out, "%.1f s", seconds);
	else
		fprintf(out, "%.0f ms", seconds * 1e3);
}

static void put_python(FILE *out, const struct profile_summary *summary)
{
	if (!summary->samples)
		return;
	if (summary->python_lines)
		fprintf(out, "   Python lines on %.1f%% of samples",
			100 * figure_share(summary->python_lines, summary->samples));
	else if (summary->python)
		fprintf(out, "   Python functions on %.1f%% of samples, no lines",
			100 * figure_share(summary->python, summary->samples));
	else
		fputs("   no Python frames", out);
}

/* Weights are right all the same: each sample says what period it stands for. */
static void put_rate(FILE *out, double frequency, double cut)
{
	if (cut >= 1.05)
		fprintf(out,
			" at %.0f Hz, of %.0f asked for: stopping threads more often slows them",
			frequency / cut, frequency);
	else
		fprintf(out, " at %.0f Hz", frequency);
}

/* What was counted along, behind the event whose samples it was read at. */
static void put_counted(FILE *out, const struct profile *profile, const struct names *names,
			uint32_t leader)
{
	const char *separator = "   counted along: ";

	for (uint32_t i = 0; i < profile_event_count(profile); i++) {
		const struct profile_event *event = profile_event(profile, i);

		if (event->group != leader + 1 || i == leader)
			continue;
		fputs(separator, out);
		put(out, names_event(names, i));
		separator = ", ";
	}
	fputc('\n', out);
}

/* What an event's samples do not stand for, and that totals make up for it. */
static void put_gaps(FILE *out, const struct profile_event *event, const char *name)
{
	double extra = event->period_total
			       ? event->estimated_total / (double)event->period_total - 1
			       : 0;

	if (event->throttled) {
		put(out, name);
		fputs(": throttled ", out);
		put_count(out, event->throttled);
		fputs(event->throttled == 1 ? " time" : " times", out);
		if (event->throttled_ns) {
			fputs(", for ", out);
			put_duration(out, event->throttled_ns);
			fputs(" in all", out);
		}
		fputs("; sample less often (-F, -c)\n", out);
	}
	if (profile_event_counter_time(event) < 1) {
		put(out, name);
		fprintf(out,
			": on a counter for %.0f%% of the time, for others used it; "
			"its counts are scaled up\n",
			100 * profile_event_counter_time(event));
	}
	if (extra >= GAPS_SAID) {
		put(out, name);
		fprintf(out, ": figures and totals make up for %.1f%% that no sample stands for\n",
			100 * extra / (1 + extra));
	}
}

static void put_event(FILE *out, const struct profile *profile, const struct names *names,
		      uint32_t index)
{
	const struct profile_event *event = profile_event(profile, index);

	if (profile_event_counted(event, index))
		return;
	put(out, names_event(names, index));
	if (event->frequency > 0)
		put_rate(out, event->frequency, profile_summary(profile)->rate_cut);
	else if (event->period) {
		fputs(" every ", out);
		put_count(out, event->period);
	}
	fputs(": ", out);
	put_count(out, event->samples);
	fputs(event->samples == 1 ? " sample, " : " samples, ", out);
	put_count(out, event->lost);
	fputs(" lost", out);
	put_counted(out, profile, names, index);
	put_gaps(out, event, names_event(names, index));
}

void summary_head(FILE *out, const struct report *report, const struct names *names)
{
	const struct profile_summary *summary = profile_summary(report->profile);
	const char *separator = "";

	if (summary->command) {
		put(out, summary->command);
		separator = "   ";
	}
	if (summary->last_time > summary->first_time) {
		fputs(separator, out);
		put_duration(out, summary->last_time - summary->first_time);
		separator = "   ";
	}
	if (summary->python_version) {
		fputs(separator, out);
		put(out, summary->python_version);
		separator = "   ";
	}
	fprintf(out, "%s%" PRIu32 " thread%s", separator, summary->threads,
		summary->threads == 1 ? "" : "s");
	put_python(out, summary);
	fputc('\n', out);
	for (uint32_t i = 0; i < profile_event_count(report->profile); i++)
		if (profile_event(report->profile, i)->sampled)
			put_event(out, report->profile, names, i);
	if (report->filter) {
		uint64_t shown = 0;

		for (uint32_t i = 0; i < report->view->events; i++)
			if (!profile_event_counted(profile_event(report->profile, i), i))
				shown += report->view->samples[i];
		put(out, report->filter);
		fputs(": ", out);
		put_count(out, shown);
		fputs(" of these samples; shares are of them\n", out);
	}
	summary_shown(out, report->profile);
}

#define INCOMPLETE_SHOWN 4

void summary_shown(FILE *out, const struct profile *profile)
{
	const char *shown = profile_summary(profile)->shown;

	if (!shown)
		return;
	fputs("Shown: ", out);
	put(out, shown);
	fputs(". What other code costs is its caller's; shares stay of the whole.\n", out);
}

void summary_origins(FILE *out, const struct profile *profile, const struct view *functions,
		     uint32_t event)
{
	uint64_t sums[CODE_ORIGINS] = {0};
	const char *separator = "";

	for (size_t i = 0; i < functions->count; i++)
		sums[code_origin(profile, functions->rows[i].function)] +=
			functions->rows[i].counts[event].self;
	for (int o = 0; o < CODE_ORIGINS; o++) {
		double share = figure_share(sums[o], functions->period_total[event]);

		if (share < 0.0005 || (o == CODE_UNKNOWN && !separator[0]))
			continue;
		fprintf(out, "%s%s %.1f%%", separator, code_origin_title((enum code_origin)o),
			100 * share);
		separator = "   ";
	}
	if (separator[0])
		fputc('\n', out);
}

/* "1.2% of 12,391 native stacks are not whole: libfoo.so: there are no unwind tables (98), ..." */
static void put_incomplete(FILE *out, const struct profile *profile)
{
	const struct profile_summary *summary = profile_summary(profile);
	size_t rows = profile_incomplete_count(profile);

	if (!rows || !summary->unwound || summary->folded)
		return;
	put_count(out, summary->unwound - summary->unwound_whole);
	fputs(" of ", out);
	put_count(out, summary->unwound);
	fputs(" native stacks are not whole", out);
	for (size_t i = 0; i < rows && i < INCOMPLETE_SHOWN; i++) {
		const struct profile_incomplete *row = profile_incomplete(profile, i);
		const char *slash = strrchr(row->object, '/');

		fputs(i ? ", " : ": ", out);
		put(out, row->reason);
		if (row->object[0]) {
			fputs(" in ", out);
			put(out, slash ? slash + 1 : row->object);
		}
		fputs(" (", out);
		put_count(out, row->samples);
		fputs(")", out);
	}
	fputs(rows > INCOMPLETE_SHOWN ? ", ...\n" : "\n", out);
}

void summary_losses(FILE *out, const struct profile *profile, bool brief)
{
	const struct profile_summary *summary = profile_summary(profile);

	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
		uint64_t count = *(const uint64_t *)((const char *)summary + losses[i].offset);

		if (!count || (brief && losses[i].callers))
			continue;
		put_count(out, count);
		fprintf(out, " %s%s%s.\n", count == 1 ? losses[i].one : losses[i].many,
			losses[i].more ? "; " : "", losses[i].more ? losses[i].more : "");
	}
	if (!brief && summary->trace) {
		char size[32];

		text_size(size, sizeof(size), summary->trace_bytes);
		fprintf(out,
			"%s of %s trace are not read: `perf inject --itrace -i FILE -o OUT` makes "
			"samples of them, which are.\n",
			size, summary->trace);
	}
	if (!brief)
		put_incomplete(out, profile);
}

void summary_metrics(FILE *out, const struct metric_columns *metrics)
{
	struct strbuf text = {0};

	if (metrics)
		metric_columns_footer(metrics, &text);
	fputs(strbuf_text(&text), out);
	strbuf_fini(&text);
}

void summary_empty(FILE *out, const struct profile *profile, const char *filter)
{
	const struct profile_summary *summary = profile_summary(profile);

	if (summary->samples && filter) {
		fputs("No sample passes ", out);
		put(out, filter);
		fputs("; --sort comm,pid,tid,dso lists what there is.\n", out);
	} else if (summary->trace) {
		fputs("The recording has no samples, but a trace.\n", out);
	} else {
		fputs("The recording has no samples: the program was over before the first one was "
		      "due, or slept all the time. Record longer, or more often (-F).\n",
		      out);
	}
}
