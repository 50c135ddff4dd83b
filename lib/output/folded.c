#include "output/names.h"
#include "output/output.h"

#include "base/map.h"
#include "base/vec.h"
#include "profile/match.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Collapsed stacks: "comm;root;caller;leaf count", the input of flame graph tools.
 *
 * Stacks of the profile tell addresses and lines apart; here only functions matter. So its tree of
 * frames is first mapped onto a tree of functions, where parents have lower numbers than their
 * children, and the counts are summed there per thread name.
 */
struct fold {
	uint32_t parent, function;
};

struct weight {
	uint32_t comm, fold;
	uint64_t value;
};

struct folds {
	const struct profile *profile;
	struct {
		VEC_OF(struct fold)
	} tree; /* 0 is the empty stack */
	struct {
		VEC_OF(struct weight)
	} weights;	   /* in order of their first sample */
	struct map known;  /* parent and function -> index of tree */
	struct map placed; /* comm and fold -> index of weights */
	uint32_t *of_stack;
};

static int fold_stacks(struct folds *folds, struct err *err)
{
	size_t count = profile_stack_count(folds->profile);

	folds->of_stack = calloc(count + 1, sizeof(*folds->of_stack));
	if (!folds->of_stack || !vec_push(&folds->tree))
		return err_nomem(err);
	for (uint32_t i = 1; i < count; i++) {
		const struct profile_stack *stack = profile_stack(folds->profile, i);
		uint32_t parent = stack->parent < i ? folds->of_stack[stack->parent] : 0;
		uint32_t function = profile_frame(folds->profile, stack->frame)->function;
		struct fold *fold;
		bool added;
		uint64_t *slot = map_put(&folds->known, (uint64_t)parent << 32 | function, &added);

		if (!slot)
			return err_nomem(err);
		if (added) {
			*slot = folds->tree.len;
			fold = vec_push(&folds->tree);
			if (!fold)
				return err_nomem(err);
			*fold = (struct fold){parent, function};
		}
		folds->of_stack[i] = (uint32_t)*slot;
	}
	return 0;
}

static int sum_cells(struct folds *folds, const struct export_options *options,
		     const struct view_matcher *matcher, struct err *err)
{
	const struct profile *profile = folds->profile;
	size_t count = profile_cell_count(profile);

	for (size_t i = 0; i < count; i++) {
		const struct profile_cell *cell = profile_cell(profile, i);
		uint32_t comm = profile_thread(profile, cell->thread)->comm;
		uint32_t fold = folds->of_stack[cell->stack];
		struct weight *weight;
		uint64_t *slot;
		bool added;

		if (cell->event != options->event ||
		    !view_matches(matcher, cell->thread, cell->stack))
			continue;
		slot = map_put(&folds->placed, (uint64_t)comm << 32 | fold, &added);
		if (!slot)
			return err_nomem(err);
		if (added) {
			*slot = folds->weights.len;
			weight = vec_push(&folds->weights);
			if (!weight)
				return err_nomem(err);
			*weight = (struct weight){comm, fold, 0};
		}
		folds->weights.items[*slot].value += options->by_period ? cell->period
									: cell->samples;
	}
	return 0;
}

/* A semicolon would end the frame's name. */
static void add_frame(struct strbuf *out, const char *name)
{
	size_t start = out->len;

	names_add_text(out, name);
	for (size_t i = start; i < out->len; i++)
		if (out->buf[i] == ';')
			out->buf[i] = ':';
}

static int put_line(FILE *out, const struct folds *folds, const struct weight *weight,
		    struct strbuf *line, struct err *err)
{
	const struct profile *profile = folds->profile;
	struct {
		VEC_OF(uint32_t)
	} path = {0};
	int rc = 0;

	for (uint32_t f = weight->fold; f && !rc; f = folds->tree.items[f].parent) {
		uint32_t *function = vec_push(&path);

		if (function)
			*function = folds->tree.items[f].function;
		else
			rc = err_nomem(err);
	}
	strbuf_reset(line);
	add_frame(line, profile_text(profile, weight->comm));
	for (size_t i = path.len; i-- && !rc;) {
		const struct profile_function *f = profile_function(profile, path.items[i]);

		strbuf_char(line, ';');
		add_frame(line, profile_text(profile, f->qualname ? f->qualname : f->name));
	}
	strbuf_printf(line, " %" PRIu64 "\n", weight->value);
	if (strbuf_failed(line))
		rc = err_nomem(err);
	if (!rc)
		fwrite(line->buf, 1, line->len, out);
	vec_fini(&path);
	return rc;
}

int output_folded(FILE *out, const struct export_options *options, struct err *err)
{
	struct folds folds = {.profile = options->profile};
	struct view_matcher *matcher = NULL;
	struct strbuf line = {0};
	int rc = view_matcher_new(&matcher, options->profile, options->filter, err);

	if (!rc)
		rc = fold_stacks(&folds, err);
	if (!rc)
		rc = sum_cells(&folds, options, matcher, err);
	for (size_t i = 0; i < folds.weights.len && !rc; i++)
		rc = put_line(out, &folds, &folds.weights.items[i], &line, err);
	strbuf_fini(&line);
	vec_fini(&folds.tree);
	vec_fini(&folds.weights);
	map_fini(&folds.known);
	map_fini(&folds.placed);
	free(folds.of_stack);
	view_matcher_free(matcher);
	return rc;
}
