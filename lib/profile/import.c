#include "profile/import.h"

#include "base/unpack.h"
#include "profile/importer.h"
#include "profile/objects.h"
#include "profile/shown.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

/* As much of a file as tells what it is. */
#define HEAD 4096

uint32_t import_event(struct importer *importer, const char *name)
{
	struct profile *profile = importer->profile;
	struct profile_event *event;

	for (uint32_t i = 0; i < profile->events.len; i++)
		if (strcmp(profile->events.items[i].name, name) == 0)
			return i;
	name = profile_keep(profile, name);
	event = name ? vec_push(&profile->events) : NULL;
	if (!event)
		return KEYED_NONE;
	event->name = name;
	event->sampled = true;
	return (uint32_t)profile->events.len - 1;
}

uint32_t import_function(struct importer *importer, enum frame_kind kind, const char *name,
			 const char *file, uint32_t line)
{
	struct profile *profile = importer->profile;
	struct function_item key = {.function = {.kind = kind, .line = line}};

	key.function.name = key.function.qualname = intern_str(&profile->strings, name);
	key.function.file = intern_str(&profile->strings, file);
	return profile_add_function(profile, &key, 0);
}

uint32_t import_frame(struct importer *importer, uint32_t function, uint32_t line)
{
	uint32_t frame = profile_add_frame(importer->profile, ORIGIN_IMPORTED, function, line);

	if (frame != KEYED_NONE)
		profile_frame_item(importer->profile, frame)->frame = (struct profile_frame){
			.function = function, .line = line};
	return frame;
}

enum frame_kind import_kind(const char *file)
{
	size_t len = strlen(file);

	if (strncmp(file, "[kernel", 7) == 0 || strncmp(file, "[guest.kernel", 13) == 0)
		return FRAME_KERNEL;
	if ((len > 3 && strcmp(file + len - 3, ".py") == 0) || file[0] == '<')
		return FRAME_PYTHON;
	return FRAME_NATIVE;
}

int import_sample(struct importer *importer, uint32_t thread, uint32_t event, uint64_t time,
		  uint64_t samples, uint64_t period, struct err *err)
{
	struct profile *profile = importer->profile;
	struct profile_summary *summary = &profile->summary;
	struct profile_sample out = {.thread = thread,
				     .event = event,
				     .cpu = UINT32_MAX,
				     .time = time,
				     .period = period};
	struct profile_cell *cell;
	uint32_t id;
	int rc = 0;

	if (thread == KEYED_NONE || event == KEYED_NONE)
		return err_nomem(err);
	out.stack = stacks_add(&profile->stacks, importer->stack.items, importer->stack.len);
	id = out.stack == STACK_NONE ? KEYED_NONE
				     : profile_add_cell(profile, thread, out.stack, event);
	if (id == KEYED_NONE)
		return err_nomem(err);
	cell = keyed_at(&profile->cells, id);
	cell->samples += samples;
	cell->period += samples * period;
	cell->square += (double)samples * (double)period * (double)period;
	profile->events.items[event].samples += samples;
	profile->events.items[event].period_total += samples * period;
	summary->samples += samples;
	if (time && (!summary->first_time || time < summary->first_time))
		summary->first_time = time;
	if (time > summary->last_time)
		summary->last_time = time;
	/* One for all of them, where they have one time. */
	out.period = samples * period;
	if (importer->options->on_sample)
		rc = importer->options->on_sample(&out, importer->options->ctx, err);
	return rc;
}

/* "a;b;c 42": a line of text that ends in a number behind a blank, below comments; or the beginning
 * of a very deep stack. */
static bool is_folded(const char *head, size_t len)
{
	const char *end, *at;

	if (memchr(head, '\0', len))
		return false;
	while (len && head[0] == '#') {
		end = memchr(head, '\n', len);
		if (!end)
			return false;
		len -= (size_t)(end + 1 - head);
		head = end + 1;
	}
	end = memchr(head, '\n', len);
	if (!end)
		return len > HEAD / 2 && memchr(head, ';', len);
	while (end > head && isspace((unsigned char)end[-1]))
		end--;
	for (at = end; at > head && (isdigit((unsigned char)at[-1]) || at[-1] == '.');)
		at--;
	return at < end && at - 1 > head && at[-1] == ' ';
}

static bool is_json(const char *head, size_t len)
{
	size_t at = 0;

	while (at < len && isspace((unsigned char)head[at]))
		at++;
	return at < len && head[at] == '{';
}

bool profile_is_import(const char *path)
{
	char head[HEAD];
	struct stat st;
	FILE *file;
	size_t len;

	/* What is no plain file cannot be read twice. */
	if (stat(path, &st) || !S_ISREG(st.st_mode) || unpack_open(&file, path, NULL))
		return false;
	len = fread(head, 1, sizeof(head), file);
	fclose(file);
	return is_json(head, len) || is_folded(head, len);
}

static int import_json(struct importer *importer, FILE *file, struct err *err)
{
	struct json_doc *doc;
	int rc = json_read(&doc, file, importer->path, err);

	if (rc)
		return rc;
	if (json_get(doc, json_get(doc, json_root(doc), "shared"), "frames") != JSON_NONE) {
		rc = import_speedscope(importer, doc, err);
	} else if (json_get(doc, json_get(doc, json_root(doc), "meta"),
			    "preprocessedProfileVersion") != JSON_NONE) {
		rc = import_firefox(importer, doc, err);
	} else {
		rc = err_set(err, ERR_UNSUPPORTED,
			     "%s is JSON, but not of speedscope and no processed profile of the "
			     "Firefox Profiler",
			     importer->path);
		err_hint(err, "Of JSON these two are read; a profile as Firefox itself saves it is "
			      "the second once profiler.firefox.com has saved it.");
	}
	json_free(doc);
	return rc;
}

static int import(struct importer *importer, FILE *file, struct err *err)
{
	static const struct data_info nothing;
	struct profile *profile = importer->profile;
	int first = getc(file), rc;

	while (first != EOF && isspace(first))
		first = getc(file);
	ungetc(first, file);
	profile->objects = objects_new(profile->processes, &nothing);
	if (!profile->objects)
		return err_nomem(err);
	rc = first == '{' ? import_json(importer, file, err) : import_folded(importer, file, err);
	if (!rc && !profile->events.len)
		rc = err_set(err, ERR_CORRUPT, "%s has no samples", importer->path);
	if (!rc)
		rc = profile_summarise(profile, err);
	return rc ? rc : profile_show(profile, &importer->options->shown, err);
}

int profile_import(struct profile **profile, const char *path,
		   const struct profile_options *options, struct err *err)
{
	struct importer importer = {.options = options, .path = path};
	FILE *file;
	int rc;

	*profile = NULL;
	if (options->phase || options->time)
		return err_set(err, ERR_UNSUPPORTED,
			       "%s is of another tool: --%s is for recordings", path,
			       options->phase ? "phase" : "time");
	rc = unpack_open(&file, path, err);
	if (rc)
		return rc;
	importer.profile = profile_new();
	rc = importer.profile ? import(&importer, file, err) : err_nomem(err);
	fclose(file);
	vec_fini(&importer.stack);
	if (rc)
		profile_free(importer.profile);
	else
		*profile = importer.profile;
	return rc;
}
