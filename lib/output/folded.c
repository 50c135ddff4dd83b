#include "output/export.h"
#include "output/fold.h"
#include "output/names.h"
#include "output/texts.h"

#include "profile/match.h"

#include <inttypes.h>

/*
 * Collapsed stacks: "comm;root;caller;leaf count", the input of flame graph tools. Counts are
 * summed for each name of a thread.
 */
struct weight {
	uint32_t comm, fold;
	uint64_t value;
};

struct weights {
	VEC_OF(struct weight) /* in order of their first sample */
};

static int sum_cells(struct weights *weights, const struct folds *folds,
		     const struct export_options *options, const struct view_matcher *matcher,
		     struct err *err)
{
	const struct profile *profile = folds->profile;
	size_t count = profile_cell_count(profile);
	struct map placed = {0}; /* comm and fold -> index of weights */
	int rc = 0;

	for (size_t i = 0; i < count && !rc; i++) {
		const struct profile_cell *cell = profile_cell(profile, i);
		uint32_t comm = profile_thread(profile, cell->thread)->comm;
		uint32_t fold = folds->of_stack[cell->stack];
		struct weight *weight;
		uint64_t *slot;
		bool added;

		if (cell->event != options->event ||
		    !view_matches(matcher, cell->thread, cell->stack))
			continue;
		slot = map_put(&placed, (uint64_t)comm << 32 | fold, &added);
		if (slot && added) {
			*slot = weights->len;
			weight = vec_push(weights);
			if (weight)
				*weight = (struct weight){comm, fold, 0};
			else
				slot = NULL;
		}
		if (slot)
			weights->items[*slot].value += options->by_period ? cell->period
									  : cell->samples;
		else
			rc = err_nomem(err);
	}
	map_fini(&placed);
	return rc;
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

/* As function of texts_init(). */
static void add_function(struct strbuf *out, uint32_t function, const void *ctx)
{
	add_frame(out, export_function_name(ctx, function));
}

int export_folded(FILE *out, const struct export_options *options, struct err *err)
{
	const struct profile *profile = options->profile;
	struct view_matcher *matcher = NULL;
	struct weights weights = {0};
	struct fold_path path = {0};
	struct strbuf line = {0};
	struct texts names = {0};
	struct folds folds;
	int rc = folds_init(&folds, profile, false, err);

	if (!rc)
		rc = view_matcher_new(&matcher, profile, options->filter, err);
	if (!rc)
		rc = sum_cells(&weights, &folds, options, matcher, err);
	if (!rc)
		rc = texts_init(&names, profile_function_count(profile), add_function, profile,
				err);
	for (size_t i = 0; i < weights.len && !rc; i++) {
		const struct weight *weight = &weights.items[i];

		strbuf_reset(&line);
		add_frame(&line, profile_text(profile, weight->comm));
		if (!folds_path(&folds, weight->fold, &path))
			rc = err_nomem(err);
		for (size_t at = 0; at < path.len && !rc; at++) {
			strbuf_char(&line, ';');
			texts_add(&line, &names, folds_function(&folds, path.items[at]));
		}
		strbuf_printf(&line, " %" PRIu64 "\n", weight->value);
		if (strbuf_failed(&line))
			rc = err_nomem(err);
		else
			fwrite(line.buf, 1, line.len, out);
	}
	strbuf_fini(&line);
	vec_fini(&path);
	vec_fini(&weights);
	texts_fini(&names);
	folds_fini(&folds);
	view_matcher_free(matcher);
	return rc;
}
