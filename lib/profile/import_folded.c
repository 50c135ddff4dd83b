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

/* The stack's frames, leaf first; false when memory ran out. */
static bool take_stack(struct importer *importer, char *stack)
{
	importer->stack.len = 0;
	for (;;) {
		char *semicolon = strrchr(stack, ';');
		char *text = semicolon ? semicolon + 1 : stack;

		if (*text) {
			uint32_t frame = add_frame(importer, text);
			uint32_t *slot = vec_push(&importer->stack);

			if (frame == KEYED_NONE || !slot)
				return false;
			*slot = frame;
		}
		if (!semicolon || importer->stack.len == DEPTH_MAX)
			return true;
		*semicolon = '\0';
	}
}

static int take_line(struct importer *importer, char *line, uint32_t thread, uint32_t event,
		     bool *understood, struct err *err)
{
	char *space = strrchr(line, ' '), *end;
	double count = space ? strtod(space + 1, &end) : 0;

	*understood = space && space > line && end != space + 1 && !*end && count >= 0 &&
		      count < 1e15;
	if (!*understood)
		return 0;
	*space = '\0';
	if (!take_stack(importer, line))
		return err_nomem(err);
	count = rint(count);
	return count > 0 ? import_sample(importer, thread, event, 0, (uint64_t)count, 1, err) : 0;
}

int import_folded(struct importer *importer, FILE *file, struct err *err)
{
	uint32_t event = import_event(importer, "samples");
	uint32_t thread = profile_add_thread(importer->profile, 0, 0, "");
	uint32_t work = progress_start("reading stacks", PROGRESS_COUNT, 0);
	uint64_t number = 0, bad = 0, first_bad = 0;
	struct strbuf line = {0};
	int rc = 0, c;

	while (!rc && (c = getc(file)) != EOF) {
		bool understood = true;

		if (c != '\n' && line.len < LINE_MAX) {
			strbuf_char(&line, (char)c);
			continue;
		}
		if (c != '\n') {
			rc = err_set(err, ERR_CORRUPT, "%s has a line of more than 1 MB",
				     importer->path);
			break;
		}
		progress_at(work, ++number);
		while (line.len &&
		       (line.buf[line.len - 1] == '\r' || line.buf[line.len - 1] == ' '))
			line.buf[--line.len] = '\0';
		if (strbuf_failed(&line))
			rc = err_nomem(err);
		else if (line.len && line.buf[0] != '#')
			rc = take_line(importer, line.buf, thread, event, &understood, err);
		if (!understood && !bad++)
			first_bad = number;
		strbuf_reset(&line);
	}
	progress_end(work);
	if (!rc)
		rc = unpack_failed(file, importer->path, err);
	/* A last line without its end is cut short like any other that makes no sense. */
	bad += line.len != 0;
	first_bad = first_bad ? first_bad : number + 1;
	strbuf_fini(&line);
	importer->profile->summary.malformed += bad;
	if (!rc && !importer->profile->summary.samples)
		rc = err_set(err, ERR_CORRUPT, "%s has no stacks: line %llu is not \"a;b;c COUNT\"",
			     importer->path, (unsigned long long)first_bad);
	return rc;
}
