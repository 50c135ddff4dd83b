#include "output/dump.h"

#include "base/json_value.h"
#include "base/text.h"
#include "base/vec.h"
#include "output/names.h"
#include "perfmap/source.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* A thread's frames as they are shown, leaf first. */
struct frames {
	VEC_OF(const struct profile_frame *)
};

static const struct profile_function *function_of(const struct dump *dump,
						  const struct profile_frame *frame)
{
	return profile_function(dump->profile, frame->function);
}

static bool is_python(const struct dump *dump, const struct profile_frame *frame)
{
	return function_of(dump, frame)->kind == FRAME_PYTHON;
}

/* A thread has one sample; its stack, or 0. */
static uint32_t stack_of(const struct dump *dump, uint32_t tid,
			 const struct profile_thread **thread)
{
	*thread = NULL;
	for (size_t i = 0; i < profile_cell_count(dump->profile); i++) {
		const struct profile_cell *cell = profile_cell(dump->profile, i);

		*thread = profile_thread(dump->profile, cell->thread);
		if ((*thread)->tid == tid)
			return cell->stack;
	}
	*thread = NULL;
	return 0;
}

static int take_frames(const struct dump *dump, uint32_t stack, struct frames *frames,
		       struct err *err)
{
	size_t outermost = 0;

	frames->len = 0;
	for (; stack; stack = profile_stack(dump->profile, stack)->parent) {
		const struct profile_frame **frame = vec_push(frames);

		if (!frame)
			return err_nomem(err);
		*frame = profile_frame(dump->profile, profile_stack(dump->profile, stack)->frame);
		if (is_python(dump, *frame))
			outermost = frames->len;
	}
	if (outermost && !dump->all_frames)
		frames->len = outermost;
	return 0;
}

/* What functions of CPython and of C libraries wait for, the surest sign first. */
static const struct reason {
	const char *function, *words;
	bool exact; /* false: names that begin so */
} reasons[] = {
	{"take_gil", "waits for the GIL", true},
	{"pthread_join", "waits for a thread to end", false},
	{"pthread_clockjoin", "waits for a thread to end", false},
	{"PyThread_acquire_lock", "waits for a lock", false},
	{"PyMutex_Lock", "waits for a lock", false},
	{"PyParkingLot_Park", "waits for a lock", false},
	{"clock_nanosleep", "sleeps", false},
	{"nanosleep", "sleeps", false},
	{"epoll_wait", "waits for events", false},
	{"epoll_pwait", "waits for events", false},
	{"poll", "waits for input or output", true},
	{"ppoll", "waits for input or output", true},
	{"select", "waits for input or output", true},
	{"pselect", "waits for input or output", false},
	{"accept", "waits for a connection", false},
	{"connect", "connects", true},
	{"recv", "waits for input", false},
	{"read", "waits for input", true},
	{"send", "waits for output", false},
	{"write", "waits for output", true},
	{"wait4", "waits for a process", true},
	{"waitpid", "waits for a process", true},
	{"waitid", "waits for a process", true},
	{"sem_wait", "waits for a lock", false},
	{"sem_clockwait", "waits for a lock", false},
	{"pthread_cond_", "waits for a condition", false},
	{"pthread_mutex_lock", "waits for a lock", false},
	{"futex_", "waits for a lock", false},
};

/* "__GI___poll" and "__poll" are poll. */
static const char *plain_name(const char *name)
{
	name += strspn(name, "_");
	if (strncmp(name, "GI_", 3) == 0)
		name += 3;
	return name + strspn(name, "_");
}

static bool names_function(const struct reason *reason, const char *name)
{
	size_t len = strlen(reason->function);

	name = plain_name(name);
	return strncmp(name, reason->function, len) == 0 &&
	       (!reason->exact || !name[len] || strchr("@.", name[len]) ||
		strcmp(name + len, "_nocancel") == 0);
}

/* By what runs for the innermost Python function; NULL where nothing tells. */
static const char *find_reason(const struct dump *dump, const struct frames *frames)
{
	for (const struct reason *reason = reasons; reason < (&reasons)[1]; reason++)
		for (size_t i = 0; i < frames->len && !is_python(dump, frames->items[i]); i++)
			if (names_function(reason,
					   profile_text(dump->profile,
							function_of(dump, frames->items[i])->name)))
				return reason->words;
	return NULL;
}

static const struct snapshot_process *process_of(const struct dump *dump, uint32_t pid)
{
	for (size_t i = 0; i < dump->snapshot->processes.len; i++)
		if (dump->snapshot->processes.items[i].pid == pid)
			return &dump->snapshot->processes.items[i];
	return NULL;
}

/* "waits for the GIL", "runs, holds the GIL": what it did when it was looked at. */
static void describe(const struct dump *dump, const struct snapshot_thread *thread,
		     const struct frames *frames, struct strbuf *out)
{
	const struct snapshot_process *process = process_of(dump, thread->pid);
	const char *reason = find_reason(dump, frames);
	static const struct {
		char state;
		const char *words;
	} states[] = {
		{'R', "runs"},	     {'S', "sleeps"},	 {'D', "waits for a device"},
		{'T', "is stopped"}, {'t', "is traced"}, {'I', "is idle"},
		{'Z', "has ended"},
	};

	/* The state is as of a moment before: the lock and its waiters are surer. */
	if (reason && (reason == reasons[0].words || strchr("SD", thread->state))) {
		strbuf_str(out, reason);
	} else if (thread->has_gil) {
		strbuf_str(out, "runs");
	} else {
		const char *words = NULL;

		for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
			if (states[i].state == thread->state)
				words = states[i].words;
		strbuf_printf(out, "%s", words ? words : "is in an unknown state");
		if (thread->sleeps_in[0] && thread->state != 'R')
			strbuf_printf(out, " in %s", thread->sleeps_in);
	}
	if (thread->has_gil)
		strbuf_str(out, ", holds the GIL");
	else if (thread->python && thread->state == 'R' && reason != reasons[0].words && process &&
		 process->gil_known)
		strbuf_str(out, ", without the GIL");
}

static void put_source(const struct dump *dump, const struct profile_frame *frame,
		       struct strbuf *out)
{
	const struct source *source = profile_source(dump->profile, function_of(dump, frame)->file);
	size_t len;
	const char *line = source ? source_line(source, frame->line, &len) : NULL;

	if (!line)
		return;
	while (len && strchr(" \t\f", *line)) {
		line++;
		len--;
	}
	if (!len)
		return;
	strbuf_str(out, "    ");
	names_add_source(out, line, len);
	strbuf_char(out, '\n');
}

static void put_frame(const struct dump *dump, const struct names *names,
		      const struct profile_frame *frame, struct strbuf *out)
{
	const struct profile_function *function = function_of(dump, frame);

	if (function->kind == FRAME_PYTHON) {
		strbuf_str(out, "  File \"");
		names_add_text(out, profile_text(dump->profile, function->file));
		strbuf_char(out, '"');
		if (frame->line)
			strbuf_printf(out, ", line %" PRIu32, frame->line);
		strbuf_str(out, ", in ");
		names_add_function(names, frame->function, out);
		strbuf_char(out, '\n');
		put_source(dump, frame, out);
		return;
	}
	strbuf_str(out, "  in ");
	names_add_function(names, frame->function, out);
	if (!names_is_unnamed(names, frame->function)) {
		strbuf_str(out, " (");
		names_add_place(names, frame->function, out);
		strbuf_char(out, ')');
	}
	strbuf_char(out, '\n');
}

/* By its program, else by the kernel. */
static const char *name_of(const struct dump *dump, const struct snapshot_thread *thread,
			   const struct profile_thread *known)
{
	if (thread->name[0])
		return thread->name;
	return known ? profile_text(dump->profile, known->comm) : "";
}

static int put_thread(FILE *out, const struct dump *dump, const struct names *names,
		      const struct snapshot_thread *thread, struct frames *frames, struct err *err)
{
	const struct profile_thread *known;
	uint32_t stack = stack_of(dump, thread->tid, &known);
	struct strbuf text = {0};
	int ret = take_frames(dump, stack, frames, err);

	if (ret)
		return ret;
	strbuf_printf(&text, "\nThread %" PRIu32 " \"", thread->tid);
	names_add_text(&text, name_of(dump, thread, known));
	strbuf_str(&text, "\": ");
	describe(dump, thread, frames, &text);
	strbuf_char(&text, '\n');
	for (size_t i = frames->len; i-- > 0;)
		put_frame(dump, names, frames->items[i], &text);
	if (!frames->len)
		strbuf_str(&text, "  (its stack could not be read)\n");
	if (strbuf_failed(&text))
		ret = err_nomem(err);
	else
		fputs(strbuf_text(&text), out);
	strbuf_fini(&text);
	return ret;
}

static void put_process(FILE *out, const struct snapshot_process *process)
{
	struct strbuf text = {0};

	strbuf_printf(&text, "Process %" PRIu32 ": ", process->pid);
	names_add_text(&text, process->command);
	strbuf_char(&text, '\n');
	if (process->version[0])
		strbuf_printf(&text, "CPython %s", process->version);
	if (process->why[0])
		strbuf_printf(&text, "%s%s", process->version[0] ? ": " : "", process->why);
	strbuf_printf(&text, ", held for %.1f ms\n", (double)process->held_ns / 1e6);
	fputs(strbuf_text(&text), out);
	strbuf_fini(&text);
}

int output_dump_text(FILE *out, const struct dump *dump, struct err *err)
{
	const struct snapshot *snapshot = dump->snapshot;
	struct frames frames = {0};
	struct names *names = NULL;
	int ret = names_new(&names, dump->profile, err);

	for (size_t p = 0; p < snapshot->processes.len && !ret; p++) {
		const struct snapshot_process *process = &snapshot->processes.items[p];

		if (p)
			fputc('\n', out);
		put_process(out, process);
		for (size_t i = 0; i < snapshot->threads.len && !ret; i++)
			if (snapshot->threads.items[i].pid == process->pid)
				ret = put_thread(out, dump, names, &snapshot->threads.items[i],
						 &frames, err);
	}
	vec_fini(&frames);
	names_free(names);
	return ret;
}

/* JSON: documented in pyperf-dump(1). A NULL that jansson takes for a failure is one at the end. */

static json_t *frame_value(const struct dump *dump, const struct profile_frame *frame)
{
	const struct profile_function *function = function_of(dump, frame);

	return json_pack("{s:o, s:o, s:s, s:I}", "function",
			 json_of_text(profile_text(dump->profile, function->qualname)), "file",
			 json_of_text(profile_text(dump->profile, function->file)), "kind",
			 frame_kind_name(function->kind), "line", (json_int_t)frame->line);
}

static json_t *thread_value(const struct dump *dump, const struct snapshot_thread *thread,
			    struct frames *frames, struct err *err)
{
	const struct profile_thread *known;
	uint32_t stack = stack_of(dump, thread->tid, &known);
	json_t *list = json_array(), *value;
	struct strbuf words = {0};
	int rc = take_frames(dump, stack, frames, err);

	describe(dump, thread, frames, &words);
	for (size_t i = 0; i < frames->len && !rc; i++)
		rc = json_array_append_new(list, frame_value(dump, frames->items[i]));
	value = rc ? NULL
		   : json_pack("{s:I, s:o, s:o, s:b, s:b, s:O}", "tid", (json_int_t)thread->tid,
			       "name", json_of_text(name_of(dump, thread, known)), "state",
			       json_of_text(strbuf_text(&words)), "running", thread->state == 'R',
			       "gil", thread->has_gil, "frames", list);
	json_decref(list);
	strbuf_fini(&words);
	return value;
}

static json_t *process_value(const struct dump *dump, const struct snapshot_process *process,
			     struct frames *frames, struct err *err)
{
	const struct snapshot *snapshot = dump->snapshot;
	json_t *threads = json_array(), *value;
	int rc = 0;

	for (size_t i = 0; i < snapshot->threads.len && !rc; i++)
		if (snapshot->threads.items[i].pid == process->pid)
			rc = json_array_append_new(
				threads,
				thread_value(dump, &snapshot->threads.items[i], frames, err));
	value = rc ? NULL
		   : json_pack("{s:I, s:o, s:o, s:f, s:O}", "pid", (json_int_t)process->pid,
			       "command", json_of_text(process->command), "python",
			       process->version[0] ? json_of_text(process->version) : json_null(),
			       "held_ms", (double)process->held_ns / 1e6, "threads", threads);
	json_decref(threads);
	return value;
}

int output_dump_json(FILE *out, const struct dump *dump, struct err *err)
{
	json_t *list = json_array();
	struct frames frames = {0};
	int rc = 0;

	for (size_t i = 0; i < dump->snapshot->processes.len && !rc; i++)
		rc = json_array_append_new(
			list,
			process_value(dump, &dump->snapshot->processes.items[i], &frames, err));
	if (!rc)
		json_dumpf(list, out, JSON_INDENT(2));
	fputc('\n', out);
	vec_fini(&frames);
	json_decref(list);
	return rc ? err_nomem(err) : 0;
}
