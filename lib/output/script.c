#include "output/export.h"
#include "output/names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * One sample after another, as `perf script` prints them, so that what reads its text reads this:
 *
 *      comm  pid/tid [cpu] seconds.micros:     period event:
 *      	         address symbol+0xoff (object)
 *
 * A Python frame is an entry like any other: its address is the offset of the instruction in the
 * code object, its symbol the qualified name, its object `file.py:line`.
 */
/* Every frame is written once and used as often as it was sampled. A caller's frame has the address
 * of its call; perf prints the one that is returned to, which is one more. */
struct frame_line {
	size_t start, len; /* len 0: not written yet */
};

struct frame_lines {
	const struct profile *profile;
	const struct names *names;
	struct strbuf text;
	struct frame_line *lines[2]; /* by frame: as a leaf, as a caller */
};

static void write_frame(struct frame_lines *lines, const struct profile_frame *frame, bool caller)
{
	const struct profile *profile = lines->profile;
	const struct profile_function *f = profile_function(profile, frame->function);
	uint64_t start = profile_function_start(profile, frame->function);
	bool python = f->kind == FRAME_PYTHON;
	struct strbuf *out = &lines->text;

	strbuf_printf(out, "\t%16" PRIx64 " ", python ? frame->addr : frame->ip + caller);
	if (names_is_unnamed(lines->names, frame->function)) {
		strbuf_str(out, "[unknown]");
		start = 0;
	} else {
		names_add_function(lines->names, frame->function, out);
	}
	if (!python && start)
		strbuf_printf(out, "+0x%" PRIx64, frame->addr + caller - start);
	strbuf_str(out, " (");
	names_add_text(out, profile_text(profile, f->file));
	if (python && frame->line)
		strbuf_printf(out, ":%" PRIu32, frame->line);
	strbuf_str(out, ")\n");
}

static void put_frame(FILE *out, struct frame_lines *lines, uint32_t frame, bool caller)
{
	struct frame_line *line = &lines->lines[caller][frame];

	if (!line->len) {
		line->start = lines->text.len;
		write_frame(lines, profile_frame(lines->profile, frame), caller);
		line->len = lines->text.len - line->start;
	}
	if (line->len)
		fwrite(lines->text.buf + line->start, 1, line->len, out);
}

static enum frame_kind kind_of(const struct profile *profile, uint32_t stack)
{
	const struct profile_stack *s = profile_stack(profile, stack);

	return profile_function(profile, profile_frame(profile, s->frame)->function)->kind;
}

/* What was inlined is at the same instruction as the function that it was inlined into. */
static bool is_within(const struct profile *profile, uint32_t stack, uint32_t into)
{
	const struct profile_frame *frame = profile_frame(profile,
							  profile_stack(profile, stack)->frame);
	const struct profile_frame *outer = profile_frame(profile,
							  profile_stack(profile, into)->frame);

	return frame->addr == outer->addr &&
	       profile_function(profile, frame->function)->file ==
		       profile_function(profile, outer->function)->file;
}

/* The innermost frame of the kernel and that of user space were interrupted; others made a call. */
static void put_chain(FILE *out, struct frame_lines *lines, uint32_t stack)
{
	bool caller = false;

	while (stack) {
		const struct profile_stack *s = profile_stack(lines->profile, stack);
		enum frame_kind kind = kind_of(lines->profile, stack);

		put_frame(out, lines, s->frame, caller && kind != FRAME_PYTHON);
		caller = s->parent &&
			 (kind != FRAME_KERNEL || kind_of(lines->profile, s->parent) == kind) &&
			 (caller || !is_within(lines->profile, stack, s->parent));
		stack = s->parent;
	}
}

static void put_sample(FILE *out, struct frame_lines *lines, const struct sample *sample,
		       const char *comm, const char *event)
{
	const struct profile_thread *thread = profile_thread(lines->profile, sample->thread);

	fprintf(out, "%s %5" PRIu32 "/%-5" PRIu32 " ", comm, thread->pid, thread->tid);
	if (sample->cpu != UINT32_MAX)
		fprintf(out, "[%03" PRIu32 "] ", sample->cpu);
	fprintf(out, "%5" PRIu64 ".%06" PRIu64 ": %10" PRIu64 " %s: \n", sample->time / 1000000000,
		sample->time % 1000000000 / 1000, sample->period, event);
	put_chain(out, lines, sample->stack);
	fputc('\n', out);
}

int output_script(FILE *out, const struct profile *profile, const struct samples *samples,
		  const struct view_filter *filter, uint32_t event, struct err *err)
{
	size_t frames = profile_frame_count(profile);
	struct frame_lines lines = {.profile = profile};
	struct samples_walk walk;
	const struct sample *sample;
	struct names *names = NULL;
	struct strbuf comm = {0}, name = {0};
	int rc = samples_walk_init(&walk, samples, profile, filter, event, err);

	if (!rc)
		rc = names_new(&names, profile, err);
	lines.names = names;
	for (size_t i = 0; i < 2 && !rc; i++) {
		lines.lines[i] = calloc(frames + 1, sizeof(*lines.lines[i]));
		if (!lines.lines[i])
			rc = err_nomem(err);
	}
	while (!rc && !ferror(out) && (sample = samples_walk_next(&walk))) {
		const struct profile_thread *thread = profile_thread(profile, sample->thread);

		strbuf_reset(&comm);
		strbuf_reset(&name);
		names_add_text(&comm, profile_text(profile, thread->comm));
		names_add_text(&name, profile_event(profile, sample->event)->name);
		put_sample(out, &lines, sample, strbuf_text(&comm), strbuf_text(&name));
	}
	if (!rc && (strbuf_failed(&lines.text) || strbuf_failed(&comm) || strbuf_failed(&name)))
		rc = err_nomem(err);
	samples_walk_fini(&walk);
	strbuf_fini(&lines.text);
	strbuf_fini(&comm);
	strbuf_fini(&name);
	free(lines.lines[0]);
	free(lines.lines[1]);
	names_free(names);
	return rc;
}

int export_script(FILE *out, const struct export_options *options, struct err *err)
{
	return output_script(out, options->profile, options->samples, options->filter,
			     export_events(options), err);
}
