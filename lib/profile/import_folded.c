#include "profile/importer.h"

#include "base/progress.h"
#include "base/unpack.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Collapsed stacks: "main;fit;sha256_block 42", root first. A frame may tell its place as py-spy
 * writes it, "fit (model.py:17)", and by the flame graph tools' mark "_[k]" that it is the
 * kernel's.
 */
#define LINE_MAX (1u << 20)
#define DEPTH_MAX 4096

struct folded_frame {
	size_t end; /* of its text, in that of the stack */
	uint32_t frame;
};

struct folded {
	struct importer *importer;
	uint32_t thread, event;
	/* The stack that was read last. Neighbours in a file have most of their callers in common,
	 * and what is the same need not be looked up again. */
	struct strbuf text;
	struct {
		VEC_OF(struct folded_frame)
	} frames; /* root first */
	struct strbuf piece;
	uint64_t bad, first_bad; /* lines that make no sense */
};

static uint32_t add_frame(struct importer *importer, char *text)
{
	size_t len = strlen(text);
	char *place = len && text[len - 1] == ')' ? strrchr(text, '(') : NULL;
	char *colon = place ? strrchr(place, ':') : NULL;
	uint32_t line = 0, function;

	if (len > 4 && strcmp(text + len - 4, "_[k]") == 0) {
		text[len - 4] = '\0';
		return import_frame(
			importer, import_function(importer, FRAME_KERNEL, text, "[kernel]", 0), 0);
	}
	if (place && place > text + 1 && place[-1] == ' ' && colon &&
	    strspn(colon + 1, "0123456789") == strlen(colon + 1) - 1) {
		line = (uint32_t)strtoul(colon + 1, NULL, 10);
		place[-1] = *colon = '\0';
		function = import_function(importer, import_kind(place + 1), text, place + 1, 0);
	} else {
		function = import_function(importer, FRAME_NATIVE, text, "", 0);
	}
	return function == KEYED_NONE ? KEYED_NONE : import_frame(importer, function, line);
}

/* Forgets the frames of the stack before that are none of this one; where the others end. */
static size_t keep_common(struct folded *folded, const char *stack)
{
	size_t same = 0;

	while (same < folded->text.len && folded->text.buf[same] == stack[same])
		same++;
	while (folded->frames.len && folded->frames.items[folded->frames.len - 1].end >= same)
		folded->frames.len--;
	return folded->frames.len ? folded->frames.items[folded->frames.len - 1].end + 1 : 0;
}

static bool add_piece(struct folded *folded, size_t start, size_t end)
{
	struct folded_frame *slot;
	uint32_t frame;

	strbuf_reset(&folded->piece);
	strbuf_add(&folded->piece, folded->text.buf + start, end - start);
	if (strbuf_failed(&folded->piece))
		return false;
	frame = add_frame(folded->importer, folded->piece.buf);
	slot = vec_push(&folded->frames);
	if (frame == KEYED_NONE || !slot)
		return false;
	*slot = (struct folded_frame){end, frame};
	return true;
}

/* The stack's frames, leaf first; of very many those next to the leaf. False when memory ran out.
 */
static bool take_stack(struct folded *folded, const char *stack)
{
	struct importer *importer = folded->importer;
	size_t at = keep_common(folded, stack);

	strbuf_reset(&folded->text);
	strbuf_str(&folded->text, stack);
	if (strbuf_failed(&folded->text))
		return false;
	while (at < folded->text.len) {
		size_t end = at + strcspn(folded->text.buf + at, ";");

		if (end > at && !add_piece(folded, at, end))
			return false;
		at = end + 1;
	}
	importer->stack.len = 0;
	for (size_t i = folded->frames.len; i-- > 0 && importer->stack.len < DEPTH_MAX;) {
		uint32_t *slot = vec_push(&importer->stack);

		if (!slot)
			return false;
		*slot = folded->frames.items[i].frame;
	}
	return true;
}

static int take_line(struct folded *folded, char *line, bool *understood, struct err *err)
{
	char *space = strrchr(line, ' '), *end;
	double count = space ? strtod(space + 1, &end) : 0;

	*understood = space && space > line && end != space + 1 && !*end && count >= 0 &&
		      count < 1e15;
	if (!*understood)
		return 0;
	*space = '\0';
	if (!take_stack(folded, line))
		return err_nomem(err);
	count = rint(count);
	return count > 0 ? import_sample(folded->importer, folded->thread, folded->event, 0,
					 (uint64_t)count, 1, err)
			 : 0;
}

/* Lines of at most LINE_MAX bytes, in a buffer that has room for one more, a newline and the end.
 */
static int read_lines(struct folded *folded, FILE *file, char *line, struct err *err)
{
	uint32_t work = progress_start("reading stacks", PROGRESS_COUNT, 0);
	uint64_t number = 0;
	int rc = 0;

	while (!rc && fgets(line, LINE_MAX + 2, file)) {
		size_t len = strlen(line);
		/* Without its end a line is the last one, cut short, or has a zero byte. */
		bool understood = len && line[len - 1] == '\n';

		progress_at(work, ++number);
		if (len > LINE_MAX && !understood) {
			rc = err_set(err, ERR_CORRUPT, "%s has a line of more than 1 MB",
				     folded->importer->path);
			break;
		}
		while (len && strchr("\n\r ", line[len - 1]))
			line[--len] = '\0';
		if (understood && len && line[0] != '#')
			rc = take_line(folded, line, &understood, err);
		if (!understood && !folded->bad++)
			folded->first_bad = number;
	}
	progress_end(work);
	return rc ? rc : unpack_failed(file, folded->importer->path, err);
}

int import_folded(struct importer *importer, FILE *file, struct err *err)
{
	struct folded folded = {
		.importer = importer,
		.event = import_event(importer, "samples"),
		.thread = profile_add_thread(importer->profile, 0, 0, ""),
		.first_bad = 1,
	};
	char *line = malloc(LINE_MAX + 2);
	int rc = line ? read_lines(&folded, file, line, err) : err_nomem(err);

	free(line);
	strbuf_fini(&folded.text);
	strbuf_fini(&folded.piece);
	vec_fini(&folded.frames);
	importer->profile->summary.malformed += folded.bad;
	if (!rc && !importer->profile->summary.samples)
		rc = err_set(err, ERR_CORRUPT, "%s has no stacks: line %llu is not \"a;b;c COUNT\"",
			     importer->path, (unsigned long long)folded.first_bad);
	return rc;
}
