#include "output/export.h"
#include "output/fold.h"
#include "output/names.h"
#include "output/texts.h"

#include <string.h>

/*
 * One row for each sample, RFC 4180, made to be read into typed columns (Parquet, data frames):
 * each column has one type, numbers have no units, what is not known is empty, and the stack is
 * one column of names, root first, separated by semicolons.
 */
static const char head[] = "time_ns,event,period,pid,tid,comm,cpu,kind,function,file,line,"
			   "python_function,python_file,python_line,stack\n";

struct csv {
	const struct profile *profile;
	struct folds folds; /* with lines */
	struct texts leaves, names, threads, events;
	uint32_t *python; /* by fold: the innermost one of Python, or 0 */
	struct fold_path path;
	struct strbuf row;
};

static void add_quoted(struct strbuf *out, const char *text, char semicolon)
{
	struct strbuf safe = {0};

	names_add_text(&safe, text);
	for (const char *s = strbuf_text(&safe); *s; s++) {
		if (*s == '"')
			strbuf_char(out, '"');
		strbuf_char(out, *s == ';' ? semicolon : *s);
	}
	strbuf_fini(&safe);
}

static void add_field(struct strbuf *out, const char *text)
{
	strbuf_char(out, '"');
	add_quoted(out, text, ';');
	strbuf_char(out, '"');
}

static void add_line(struct strbuf *out, uint32_t line)
{
	if (line)
		strbuf_printf(out, "%u", line);
}

/* Functions of texts_init(), with a struct csv. */

static void write_name(struct strbuf *out, uint32_t function, const void *ctx)
{
	const struct csv *csv = ctx;

	add_quoted(out, export_function_name(csv->profile, function), ':');
}

/* "function",file,line of a place. */
static void write_leaf(struct strbuf *out, uint32_t place, const void *ctx)
{
	const struct csv *csv = ctx;
	const struct fold_place *p = &csv->folds.places.items[place];
	const struct profile_function *f = profile_function(csv->profile, p->function);

	add_field(out, export_function_name(csv->profile, p->function));
	strbuf_char(out, ',');
	add_field(out, profile_text(csv->profile, f->file));
	strbuf_char(out, ',');
	add_line(out, p->line);
}

/* pid,tid,"comm" */
static void write_thread(struct strbuf *out, uint32_t thread, const void *ctx)
{
	const struct csv *csv = ctx;
	const struct profile_thread *t = profile_thread(csv->profile, thread);

	strbuf_printf(out, "%u,%u,", t->pid, t->tid);
	add_field(out, profile_text(csv->profile, t->comm));
}

static void write_event(struct strbuf *out, uint32_t event, const void *ctx)
{
	const struct csv *csv = ctx;

	add_field(out, profile_event(csv->profile, event)->name);
}

static enum frame_kind kind_of(const struct csv *csv, uint32_t fold)
{
	return profile_function(csv->profile, folds_function(&csv->folds, fold))->kind;
}

static int prepare(struct csv *csv, struct err *err)
{
	const struct profile *profile = csv->profile;
	int rc = folds_init(&csv->folds, profile, true, err);

	if (rc)
		return rc;
	csv->python = calloc(csv->folds.tree.len, sizeof(*csv->python));
	if (!csv->python)
		return err_nomem(err);
	for (uint32_t i = 1; i < csv->folds.tree.len; i++)
		csv->python[i] = kind_of(csv, i) == FRAME_PYTHON
					 ? i
					 : csv->python[csv->folds.tree.items[i].parent];
	rc = texts_init(&csv->names, profile_function_count(profile), write_name, csv, err);
	if (!rc)
		rc = texts_init(&csv->leaves, csv->folds.places.len, write_leaf, csv, err);
	if (!rc)
		rc = texts_init(&csv->threads, profile_thread_count(profile), write_thread, csv,
				err);
	if (!rc)
		rc = texts_init(&csv->events, profile_event_count(profile), write_event, csv, err);
	return rc;
}

/* kind,leaf,python leaf */
static void add_leaves(struct csv *csv, uint32_t fold)
{
	struct strbuf *row = &csv->row;

	if (fold) {
		strbuf_str(row, frame_kind_name(kind_of(csv, fold)));
		strbuf_char(row, ',');
		texts_add(row, &csv->leaves, csv->folds.tree.items[fold].place);
	} else {
		strbuf_str(row, ",,,");
	}
	strbuf_char(row, ',');
	if (csv->python[fold])
		texts_add(row, &csv->leaves, csv->folds.tree.items[csv->python[fold]].place);
	else
		strbuf_str(row, ",,");
}

static int put_row(FILE *out, struct csv *csv, const struct sample *sample, struct err *err)
{
	uint32_t fold = csv->folds.of_stack[sample->stack];
	struct strbuf *row = &csv->row;

	if (!folds_path(&csv->folds, fold, &csv->path))
		return err_nomem(err);
	strbuf_reset(row);
	strbuf_printf(row, "%llu,", (unsigned long long)sample->time);
	texts_add(row, &csv->events, sample->event);
	strbuf_printf(row, ",%llu,", (unsigned long long)sample->period);
	texts_add(row, &csv->threads, sample->thread);
	strbuf_char(row, ',');
	if (sample->cpu != UINT32_MAX)
		strbuf_printf(row, "%u", sample->cpu);
	strbuf_char(row, ',');
	add_leaves(csv, fold);
	strbuf_str(row, ",\"");
	for (size_t i = 0; i < csv->path.len; i++) {
		if (i)
			strbuf_char(row, ';');
		texts_add(row, &csv->names, folds_function(&csv->folds, csv->path.items[i]));
	}
	strbuf_str(row, "\"\n");
	if (strbuf_failed(row))
		return err_nomem(err);
	fwrite(row->buf, 1, row->len, out);
	return 0;
}

int export_csv(FILE *out, const struct export_options *options, struct err *err)
{
	struct csv csv = {.profile = options->profile};
	const struct sample *sample;
	struct samples_walk walk;
	int rc = samples_walk_init(&walk, options->samples, options->profile, options->filter,
				   export_events(options), err);

	if (!rc)
		rc = prepare(&csv, err);
	fputs(head, out);
	while (!rc && !ferror(out) && (sample = samples_walk_next(&walk)))
		rc = put_row(out, &csv, sample, err);
	strbuf_fini(&csv.row);
	vec_fini(&csv.path);
	free(csv.python);
	texts_fini(&csv.names);
	texts_fini(&csv.leaves);
	texts_fini(&csv.threads);
	texts_fini(&csv.events);
	folds_fini(&csv.folds);
	samples_walk_fini(&walk);
	return rc;
}
