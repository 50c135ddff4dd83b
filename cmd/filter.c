#include "cmd/filter.h"

#include "base/log.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "data/data.h"
#include "profile/import.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_INPUT "perf.data"

struct view_given view_given;

const struct poptOption shown_options[] = {
	{"files", '\0', POPT_ARG_STRING, &view_given.shown.files, 0,
	 "show only functions of these files; what others cost is their callers'",
	 "GLOB[,GLOB...]"},
	{"modules", '\0', POPT_ARG_STRING, &view_given.shown.modules, 0,
	 "show only functions of these modules, and of those below them", "GLOB[,GLOB...]"},
	{"exclude", '\0', POPT_ARG_STRING, &view_given.shown.exclude, 0,
	 "do not show functions of these files or modules", "GLOB[,GLOB...]"},
	POPT_TABLEEND,
};

const struct poptOption view_options[] = {
	{"input", 'i', POPT_ARG_STRING, &view_given.input, 0,
	 "recording to read, - for standard input (default: perf.data)", "FILE"},
	{"event", 'e', POPT_ARG_STRING, &view_given.event, 0,
	 "event that counts first (default: the first recorded)", "EVENT"},
	{"comm", 'c', POPT_ARG_STRING, &view_given.comm, 0, "only threads of these names",
	 "NAME[,NAME...]"},
	{"pid", '\0', POPT_ARG_STRING, &view_given.pid, 0, "only these processes", "PID[,PID...]"},
	{"tid", '\0', POPT_ARG_STRING, &view_given.tid, 0, "only these threads", "TID[,TID...]"},
	{"dso", 'd', POPT_ARG_STRING, &view_given.dso, 0,
	 "only samples whose innermost code lies in these files", "FILE[,FILE...]"},
	{"phase", '\0', POPT_ARG_STRING, &view_given.phase, 0,
	 "only what ran in phases of this name, as the program gave it", "NAME"},
	{"time", '\0', POPT_ARG_STRING, &view_given.time, 0,
	 "only what ran from START to STOP, in seconds as `pyperf script` has them, or in percent",
	 "START,STOP|A%-B%"},
	{NULL, '\0', POPT_ARG_INCLUDE_TABLE, (void *)shown_options, 0, NULL, NULL},
	{"native", '\0', POPT_ARG_STRING, &view_given.native, 0,
	 "native frames: on (default); off, what they cost is their Python line's; all, with "
	 "CPython's eval loop and trampolines",
	 "on|off|all"},
	{"by-pmu", '\0', POPT_ARG_NONE, &view_given.by_pmu, 0,
	 "events of each of a hybrid CPU's PMUs apart (default: their sum)", NULL},
	{"quiet", 'q', POPT_ARG_NONE, &view_given.quiet, 0, "the result alone, no remarks", NULL},
	{"verbose", 'v', POPT_ARG_NONE, &view_given.verbose, 0, "say more", NULL},
	POPT_TABLEEND,
};

const struct poptOption reduced_options[] = {
	{"reduced", '\0', POPT_ARG_NONE, &view_given.reduced, 0,
	 "only what has at least 1% of some event; gaps are shown as ...", NULL},
	POPT_TABLEEND,
};

const struct poptOption inline_options[] = {
	{"inline", '\0', POPT_ARG_NONE, &view_given.with_inline, 0,
	 "give functions that the compiler inlined frames of their own", NULL},
	{"no-inline", '\0', POPT_ARG_NONE, &view_given.no_inline, 0,
	 "count functions that the compiler inlined as a part of their callers", NULL},
	POPT_TABLEEND,
};

const struct word native_words[] = {
	{"on", PROFILE_NATIVE_ON},
	{"off", PROFILE_NATIVE_OFF},
	{"all", PROFILE_NATIVE_ALL},
	{0},
};

/* The events' names for a message: "cycles, cache-misses". */
static void list_events(const struct profile *profile, struct strbuf *out)
{
	for (uint32_t i = 0; i < profile_event_count(profile); i++) {
		const struct profile_event *event = profile_event(profile, i);

		if (event->sampled)
			strbuf_printf(out, "%s%s", out->len ? ", " : "", event->name);
	}
}

/* Does `name` name the event, with or without its modifiers (":u", ":ppp")? */
static bool names_event(const char *name, const char *event, bool modifiers)
{
	size_t len = strlen(name);

	return strncmp(name, event, len) == 0 && (!event[len] || (!modifiers && event[len] == ':'));
}

/* Splits "cycles#2" into the name and which of that name is meant. */
static char *split_number(const char *given, unsigned long *number)
{
	const char *hash = strrchr(given, '#');
	size_t len = strlen(given);

	*number = 1;
	if (hash && hash[1] && strspn(hash + 1, "0123456789") == strlen(hash + 1)) {
		*number = strtoul(hash + 1, NULL, 10);
		len = (size_t)(hash - given);
	}
	return strndup(given, len);
}

/* The event of that name, exactly or but for its modifiers; UINT32_MAX where there is none. */
static uint32_t find_event(const struct profile *profile, const char *name, unsigned long number)
{
	for (int exact = 1; exact >= 0; exact--) {
		unsigned long left = number;

		for (uint32_t i = 0; i < profile_event_count(profile); i++) {
			const struct profile_event *event = profile_event(profile, i);

			if (event->sampled && names_event(name, event->name, exact) && !--left)
				return i;
		}
	}
	return UINT32_MAX;
}

/* Without -e: the first that has samples, or the first. */
static uint32_t first_event(const struct profile *profile)
{
	uint32_t first = UINT32_MAX;

	for (uint32_t i = 0; i < profile_event_count(profile); i++) {
		const struct profile_event *event = profile_event(profile, i);

		if (event->sampled && event->samples)
			return i;
		if (event->sampled && first == UINT32_MAX)
			first = i;
	}
	return first;
}

static int choose_event(struct opened *opened, struct err *err)
{
	const struct profile *profile = opened->profile;
	struct strbuf list = {0};
	unsigned long number;
	char *name;

	if (!view_given.event) {
		opened->event = first_event(profile);
		if (opened->event != UINT32_MAX)
			return 0;
		return err_set(err, ERR_CORRUPT, "the recording has no events that are sampled");
	}
	name = split_number(view_given.event, &number);
	if (!name)
		return err_nomem(err);
	opened->event = find_event(profile, name, number);
	free(name);
	if (opened->event != UINT32_MAX)
		return 0;
	list_events(profile, &list);
	err_set(err, ERR_USAGE, "the recording has no event '%s'", view_given.event);
	err_hint(err, "It has: %s", strbuf_text(&list));
	strbuf_fini(&list);
	return ERR_USAGE;
}

static int check_numbers(const char *option, const char *list, struct err *err)
{
	if (list && (!*list || strspn(list, "0123456789,") != strlen(list)))
		return err_set(err, ERR_USAGE, "%s takes numbers, not '%s'", option, list);
	return 0;
}

static int set_filter(struct opened *opened, struct err *err)
{
	const struct {
		const char *option, *value;
		const char **field; /* NULL: chosen while loading */
		bool numbers;
	} rows[] = {
		{"--comm", view_given.comm, &opened->filter.comm, false},
		{"--pid", view_given.pid, &opened->filter.pids, true},
		{"--tid", view_given.tid, &opened->filter.tids, true},
		{"--dso", view_given.dso, &opened->filter.dso, false},
		{"--phase", view_given.phase, NULL, false},
		{"--time", view_given.time, NULL, false},
	};
	struct strbuf text = {0};
	int rc = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && !rc; i++) {
		if (rows[i].field)
			*rows[i].field = rows[i].value;
		if (rows[i].value)
			strbuf_printf(&text, "%s%s %s", text.len ? " " : "", rows[i].option,
				      rows[i].value);
		if (rows[i].numbers)
			rc = check_numbers(rows[i].option, rows[i].value, err);
	}
	if (!rc && strbuf_failed(&text))
		rc = err_nomem(err);
	opened->filter_text = strbuf_detach(&text, NULL);
	return rc;
}

static int explain_missing(const char *path, struct err *err)
{
	struct stat st;

	if (err->code != ERR_NOT_FOUND || view_given.input)
		return err->code;
	err_set(err, ERR_NOT_FOUND, "there is no %s in this folder", path);
	if (fstat(STDIN_FILENO, &st) == 0 && S_ISFIFO(st.st_mode))
		err_hint(err, "Record a program first:  pyperf record -- python3 program.py\n"
			      "or read what another command writes:  -i -");
	else
		err_hint(err, "Record a program first:  pyperf record -- python3 program.py\n"
			      "or name a recording:  -i FILE");
	return ERR_NOT_FOUND;
}

const char *view_input(void)
{
	return view_given.input ? view_given.input : DEFAULT_INPUT;
}

int view_open(struct opened *opened, const struct profile_options *options, struct err *err)
{
	const char *path = view_input();
	struct profile_options load = *options;
	int native = view_given.native ? word_find(native_words, view_given.native) : 0, rc;

	if (native < 0)
		return err_set(err, ERR_USAGE, "--native is on, off or all, not '%s'",
			       view_given.native);
	load.native = (enum profile_native)native;
	load.no_inline = view_given.no_inline || (load.no_inline && !view_given.with_inline);
	/* Who names one PMU's part wants to see it. */
	load.by_pmu |= view_given.by_pmu || (view_given.event && strchr(view_given.event, '/'));
	load.phase = view_given.phase;
	load.time = view_given.time;
	load.shown = view_given.shown;
	memset(opened, 0, sizeof(*opened));
	command_verbosity(view_given.quiet, view_given.verbose);
	/* A pager that quits early shows as EPIPE in command_finish_output(). */
	signal(SIGPIPE, SIG_IGN);
	if (profile_is_import(path)) {
		rc = profile_import(&opened->profile, path, &load, err);
	} else {
		if (data_open(&opened->file, path, err) < 0)
			return explain_missing(path, err);
		rc = profile_load(&opened->profile, opened->file, &load, err);
	}
	if (!rc && profile_summary(opened->profile)->loss)
		log_warn("the recording is damaged: %s", profile_summary(opened->profile)->loss);
	if (!rc)
		rc = choose_event(opened, err);
	if (!rc)
		rc = set_filter(opened, err);
	if (rc)
		view_close(opened);
	return rc;
}

void view_close(struct opened *opened)
{
	profile_free(opened->profile);
	data_close(opened->file);
	free(opened->filter_text);
	memset(opened, 0, sizeof(*opened));
}

int view_width(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return 0;
	return size.ws_col;
}
