#include "output/names.h"
#include "output/output.h"

#include "base/vec.h"
#include "profile/match.h"

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
struct script {
	struct {
		VEC_OF(struct profile_sample)
	} samples;
};

struct script *script_new(void)
{
	return calloc(1, sizeof(struct script));
}

void script_free(struct script *script)
{
	if (!script)
		return;
	vec_fini(&script->samples);
	free(script);
}

int script_keep(const struct profile_sample *sample, void *ctx, struct err *err)
{
	struct script *script = ctx;
	struct profile_sample *kept = vec_push(&script->samples);

	if (!kept)
		return err_nomem(err);
	*kept = *sample;
	return 0;
}

/* Every frame is written once and used as often as it was sampled. */
struct frame_lines {
	const struct profile *profile;
	struct strbuf text;
	size_t *starts, *lens; /* per frame; len 0: not written yet */
};

static void write_frame(struct frame_lines *lines, const struct profile_frame *frame)
{
	const struct profile *profile = lines->profile;
	const struct profile_function *f = profile_function(profile, frame->function);
	struct strbuf *out = &lines->text;

	strbuf_printf(out, "\t%16" PRIx64 " ", f->kind == FRAME_PYTHON ? frame->addr : frame->ip);
	names_add_text(out, profile_text(profile, f->qualname ? f->qualname : f->name));
	strbuf_str(out, " (");
	names_add_text(out, profile_text(profile, f->file));
	if (f->kind == FRAME_PYTHON && frame->line)
		strbuf_printf(out, ":%" PRIu32, frame->line);
	strbuf_str(out, ")\n");
}

static void put_frame(FILE *out, struct frame_lines *lines, uint32_t frame)
{
	if (!lines->lens[frame]) {
		lines->starts[frame] = lines->text.len;
		write_frame(lines, profile_frame(lines->profile, frame));
		lines->lens[frame] = lines->text.len - lines->starts[frame];
	}
	if (lines->lens[frame])
		fwrite(lines->text.buf + lines->starts[frame], 1, lines->lens[frame], out);
}

static void put_sample(FILE *out, struct frame_lines *lines, const struct profile_sample *sample,
		       const char *comm, const char *event)
{
	const struct profile_thread *thread = profile_thread(lines->profile, sample->thread);

	fprintf(out, "%s %5" PRIu32 "/%-5" PRIu32 " ", comm, thread->pid, thread->tid);
	if (sample->cpu != UINT32_MAX)
		fprintf(out, "[%03" PRIu32 "] ", sample->cpu);
	fprintf(out, "%5" PRIu64 ".%06" PRIu64 ": %10" PRIu64 " %s: \n", sample->time / 1000000000,
		sample->time % 1000000000 / 1000, sample->period, event);
	for (uint32_t stack = sample->stack; stack;) {
		const struct profile_stack *s = profile_stack(lines->profile, stack);

		put_frame(out, lines, s->frame);
		stack = s->parent;
	}
	fputc('\n', out);
}

int output_script(FILE *out, const struct profile *profile, const struct script *script,
		  const struct view_filter *filter, uint32_t event, struct err *err)
{
	size_t frames = profile_frame_count(profile);
	struct frame_lines lines = {.profile = profile};
	struct view_matcher *matcher = NULL;
	struct names *names = NULL;
	struct strbuf comm = {0}, name = {0};
	int rc = names_new(&names, profile, err);

	lines.starts = calloc(frames + 1, sizeof(*lines.starts));
	lines.lens = calloc(frames + 1, sizeof(*lines.lens));
	if (!rc && (!lines.starts || !lines.lens))
		rc = err_nomem(err);
	if (!rc)
		rc = view_matcher_new(&matcher, profile, filter, err);
	for (size_t i = 0; i < script->samples.len && !rc; i++) {
		const struct profile_sample *sample = &script->samples.items[i];
		const struct profile_thread *thread = profile_thread(profile, sample->thread);

		if (!profile_event(profile, sample->event)->sampled ||
		    (event != UINT32_MAX && sample->event != event) ||
		    !view_matches(matcher, sample->thread, sample->stack))
			continue;
		strbuf_reset(&comm);
		strbuf_reset(&name);
		names_add_text(&comm, profile_text(profile, thread->comm));
		names_add_text(&name, profile_event(profile, sample->event)->name);
		put_sample(out, &lines, sample, strbuf_text(&comm), strbuf_text(&name));
		if (ferror(out))
			break;
	}
	if (!rc && (strbuf_failed(&lines.text) || strbuf_failed(&comm) || strbuf_failed(&name)))
		rc = err_nomem(err);
	view_matcher_free(matcher);
	strbuf_fini(&lines.text);
	strbuf_fini(&comm);
	strbuf_fini(&name);
	free(lines.starts);
	free(lines.lens);
	names_free(names);
	return rc;
}
