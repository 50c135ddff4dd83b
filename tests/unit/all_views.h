#ifndef PYPERF_TEST_ALL_VIEWS_H
#define PYPERF_TEST_ALL_VIEWS_H

#include "data/data.h"
#include "output/output.h"
#include "output/samples.h"
#include "profile/profile.h"

#include <stdio.h>

/*
 * Everything that report, annotate, script and export make of a recording: for inputs of which it
 * is known beforehand only that nothing bad must happen.
 */
struct all_views {
	struct profile *profile;
	struct view *functions, *lines;
	struct view_groups *groups;
	struct samples *samples;
	FILE *out, *json;
	uint32_t event;
	size_t annotations; /* at most, by kind of function */
};

static inline int all_views_report(struct all_views *v, struct err *err)
{
	static const enum view_key keys[] = {VIEW_COMM, VIEW_DSO, VIEW_FILE, VIEW_KIND};
	const struct view_filter filter = {0};
	struct report report = {
		.profile = v->profile,
		.event = v->event,
		.kind = OUTPUT_ANY_KIND,
		.show_samples = true,
		.width = 100,
	};
	int rc = view_functions(&v->functions, v->profile, &filter, VIEW_BY_TOTAL, v->event, err);

	if (!rc)
		rc = view_lines(&v->lines, v->profile, &filter, UINT32_MAX, v->event, err);
	if (!rc)
		rc = view_groups(&v->groups, v->profile, &filter, keys, 4, VIEW_BY_SELF, v->event,
				 err);
	report.view = v->functions;
	report.lines = v->lines;
	if (!rc)
		rc = output_json(v->json, &report, err);
	if (!rc)
		rc = output_report_text(v->out, &report, err);
	if (!rc)
		rc = output_report_csv(v->out, &report, err);
	if (rc)
		return rc;
	report.view = &v->groups->view;
	report.groups = v->groups;
	report.lines = NULL;
	return output_report_text(v->out, &report, err);
}

static inline int all_views_annotate(struct all_views *v, struct err *err)
{
	const struct view_filter filter = {0};
	size_t left[] = {v->annotations, v->annotations, v->annotations};
	struct annotate annotate = {
		.profile = v->profile,
		.functions = v->functions,
		.filter = &filter,
		.event = v->event,
	};
	int rc = 0;

	for (size_t i = 0; i < v->functions->count && !rc; i++) {
		enum frame_kind kind;

		annotate.function = v->functions->rows[i].function;
		kind = profile_function(v->profile, annotate.function)->kind;
		if (!left[kind])
			continue;
		left[kind]--;
		if (kind == FRAME_PYTHON)
			rc = output_annotate_python(v->out, &annotate, err);
		else
			rc = output_annotate_native(v->out, &annotate, err);
	}
	return rc;
}

static inline int all_views_export(struct all_views *v, struct err *err)
{
	const struct view_filter filter = {0};
	const struct export_options options = {
		.profile = v->profile,
		.filter = &filter,
		.event = v->event,
		.samples = v->samples,
		.all_events = true,
	};
	int rc = output_script(v->out, v->profile, v->samples, &filter, UINT32_MAX, err);

	for (const struct export_format *f = export_formats; f->name && !rc; f++)
		rc = f->write ? f->write(v->out, &options, err) : 0;
	return rc;
}

/*
 * Loads the file and writes everything, the report's JSON to a stream of its own. Where it fails,
 * *profile tells why: NULL when the file could not be loaded; otherwise a view or an output went
 * wrong, which only lack of memory excuses. The caller frees the profile.
 */
static inline int all_views_write(FILE *out, FILE *json, struct data_file *file, size_t annotations,
				  struct profile **profile, struct err *err)
{
	struct all_views v = {
		.out = out, .json = json, .annotations = annotations, .samples = samples_new()};
	const struct profile_options options = {.on_sample = samples_keep, .ctx = v.samples};
	int rc = v.samples ? profile_load(&v.profile, file, &options, err) : err_nomem(err);

	while (!rc && v.event < profile_event_count(v.profile) &&
	       !profile_event(v.profile, v.event)->sampled)
		v.event++;
	if (!rc && v.event < profile_event_count(v.profile)) {
		rc = all_views_report(&v, err);
		if (!rc)
			rc = all_views_annotate(&v, err);
		if (!rc)
			rc = all_views_export(&v, err);
	}
	view_free(v.functions);
	view_free(v.lines);
	view_groups_free(v.groups);
	samples_free(v.samples);
	*profile = v.profile;
	return rc;
}

#endif
