#include "record/doctor_probe.h"

#include "perfmap/engine.h"
#include "record/pythons.h"
#include "record/target.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

void doctor_say(struct doctor_line *line, enum doctor_verdict verdict, const char *fmt, ...)
{
	va_list ap;

	line->verdict = verdict;
	va_start(ap, fmt);
	vsnprintf(line->text, sizeof(line->text), fmt, ap);
	va_end(ap);
}

void doctor_say_unknown(struct doctor_line *line, const struct err *err)
{
	doctor_say(line, DOCTOR_UNKNOWN, "not known: %.360s", err->text);
}

static void probe_bpf(struct examination *exam, struct doctor_line *line)
{
	struct err err = {0};

	if (exam->machine->try_bpf(&err) == 0)
		doctor_say(line, DOCTOR_OK, "the walker loads and attaches");
	else
		doctor_say(line, DOCTOR_FAIL, "%.390s", err.text);
	line->need = (int)privilege_explain(&exam->doctor->privilege, PRIVILEGE_NEED_BPF);
}

static void probe_engine(struct examination *exam, struct doctor_line *line)
{
	struct doctor *doctor = exam->doctor;
	struct strbuf why = {0};
	struct err err = {0};
	const char *name;

	if (exam->machine->choose_engine(&doctor->engine, &why, &err) < 0) {
		doctor_say(line, DOCTOR_FAIL, "%.390s", err.text);
		return;
	}
	name = engine_name(doctor->engine);
	line->need = (int)privilege_explain(&doctor->privilege, PRIVILEGE_NEED_BPF);
	exam->lines = engine_has_lines(doctor->engine);
	doctor_say(line, exam->lines ? DOCTOR_OK : DOCTOR_FAIL, "--python=auto takes %s%s%.300s",
		   name, why.len ? ", since " : ", the best", strbuf_text(&why));
	strbuf_fini(&why);
}

static void probe_processes(struct examination *exam, struct doctor_line *line)
{
	const struct doctor *doctor = exam->doctor;
	unsigned int walkable = 0;
	int need = -1;

	for (size_t i = 0; i < doctor->pythons.len; i++) {
		const struct doctor_python *python = &doctor->pythons.items[i];

		walkable += python->verdict != DOCTOR_FAIL;
		if (python->verdict != DOCTOR_OK)
			need = python->need;
	}
	if (exam->pid && doctor->pythons.len)
		doctor_say(line, doctor->pythons.items[0].verdict, "%s",
			   doctor->pythons.items[0].text);
	else if (doctor->hidden_processes)
		doctor_say(line,
			   doctor_has_cap(exam, PRIVILEGE_SYS_PTRACE) ? DOCTOR_OK : DOCTOR_NOTE,
			   "%u can be walked; %u process%s may not be looked into", walkable,
			   doctor->hidden_processes, doctor->hidden_processes == 1 ? "" : "es");
	else
		doctor_say(line, DOCTOR_OK, "%u can be walked", walkable);
	if (walkable < doctor->pythons.len && !exam->pid)
		line->verdict = DOCTOR_NOTE;
	if (exam->pid || !doctor->hidden_processes)
		line->need = need;
}

/* In the order in which they are shown; what one notes in the examination serves those below. */
static const struct check {
	const char *id, *title;
	doctor_probe *probe;
	int need;    /* that stands behind a failure; a probe may know better */
	bool of_bpf; /* in the way of that engine alone */
} checks[] = {
	{"container", "container", doctor_probe_place, PRIVILEGE_NEED_USER_NAMESPACE, false},
	{"capabilities", "capabilities", doctor_probe_capabilities, PRIVILEGE_NEED_BPF, false},
	{"perf-events", "perf events", doctor_probe_open, PRIVILEGE_NEED_PERF, false},
	{"paranoid", "perf_event_paranoid", doctor_probe_paranoid, PRIVILEGE_NEED_PERF, false},
	{"seccomp", "seccomp", doctor_probe_seccomp, PRIVILEGE_NEED_SECCOMP, false},
	{"hardware-events", "hardware events", doctor_probe_hardware, PRIVILEGE_NEED_COUNTERS,
	 false},
	{"pmus", "PMUs", doctor_probe_pmus, -1, false},
	{"kernel-samples", "kernel code", doctor_probe_kernel_side, PRIVILEGE_NEED_PERF, false},
	{"kernel-symbols", "kernel symbols", doctor_probe_symbols, PRIVILEGE_NEED_KALLSYMS, false},
	{"whole-cpus", "whole CPUs", doctor_probe_whole_cpus, PRIVILEGE_NEED_WHOLE_CPUS, false},
	{"tracepoints", "tracepoints", doctor_probe_tracepoints, PRIVILEGE_NEED_TRACEFS, false},
	{"sample-rate", "sample rate", doctor_probe_rate, PRIVILEGE_NEED_RATE, false},
	{"stack-depth", "stack depth", doctor_probe_stack, PRIVILEGE_NEED_STACK, false},
	{"locked-memory", "locked memory", doctor_probe_mlock, PRIVILEGE_NEED_MLOCK, false},
	{"lockdown", "lockdown", doctor_probe_lockdown, PRIVILEGE_NEED_LOCKDOWN, true},
	{"btf", "BTF", doctor_probe_btf, PRIVILEGE_NEED_BTF, true},
	{"bpf", "BPF", probe_bpf, PRIVILEGE_NEED_BPF, true},
	{"ptrace", "ptrace", doctor_probe_ptrace, PRIVILEGE_NEED_PTRACE_SCOPE, false},
	{"engine", "Python engine", probe_engine, PRIVILEGE_NEED_BPF, false},
	{"pythons", "Pythons that run", probe_processes, PRIVILEGE_NEED_PTRACE, false},
};

static int run_checks(struct examination *exam, struct err *err)
{
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		struct doctor_line *line = vec_push(&exam->doctor->lines);

		if (!line)
			return err_nomem(err);
		line->id = checks[i].id;
		line->title = checks[i].title;
		line->need = checks[i].need;
		checks[i].probe(exam, line);
		if (line->verdict == DOCTOR_OK || line->verdict == DOCTOR_UNKNOWN)
			line->need = -1;
	}
	/* Another engine has lines, too, at a price. */
	for (size_t i = 0; i < exam->doctor->lines.len && exam->lines; i++)
		if (checks[i].of_bpf && exam->doctor->lines.items[i].verdict == DOCTOR_FAIL)
			exam->doctor->lines.items[i].verdict = DOCTOR_NOTE;
	return 0;
}

int doctor_run(struct doctor *doctor, const struct doctor_machine *machine, pid_t pid,
	       struct err *err)
{
	struct examination exam = {.doctor = doctor, .machine = machine, .pid = pid};
	struct utsname name;
	int ret;

	*doctor = (struct doctor){.cpus = (int)sysconf(_SC_NPROCESSORS_ONLN)};
	if (uname(&name) == 0)
		snprintf(doctor->kernel, sizeof(doctor->kernel), "%.20s %.40s %.16s", name.sysname,
			 name.release, name.machine);
	if (pid && kill(pid, 0) < 0 && errno == ESRCH)
		return err_set(err, ERR_NOT_FOUND, "there is no process %d", (int)pid);
	privilege_read_at(&doctor->privilege, machine->root);
	ret = pid ? doctor_look_at(doctor, pid, err) : doctor_look_around(doctor, err);
	if (!ret)
		ret = run_checks(&exam, err);
	doctor->works = exam.opens && exam.lines &&
			(!pid ||
			 (doctor->pythons.len && doctor->pythons.items[0].verdict != DOCTOR_FAIL));
	return ret;
}

void doctor_fini(struct doctor *doctor)
{
	vec_fini(&doctor->lines);
	vec_fini(&doctor->pythons);
}

const char *doctor_place_name(enum privilege_place place)
{
	static const char *const names[PRIVILEGE_PLACES] = {
		[PRIVILEGE_DOCKER] = "docker",
		[PRIVILEGE_PODMAN] = "podman",
		[PRIVILEGE_KUBERNETES] = "kubernetes",
		[PRIVILEGE_CONTAINER] = "container",
	};

	return names[place];
}

/* The machine that we run on */

static int try_bpf(struct err *err)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = PERF_ATTR_SIZE_VER5,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000,
		.disabled = 1,
	};
	struct py_engine *engine;
	int ret = py_engine_open(&engine, err), fd;

	if (ret < 0)
		return ret;
	fd = event_open_fd(&attr, 0, -1, -1);
	if (fd < 0) {
		ret = err_sys(err, -fd, "the walker loads, but there is no event to attach it to");
	} else {
		ret = py_engine_attach(engine, fd, false, err);
		close(fd);
	}
	py_engine_close(engine);
	return ret;
}

static void note_refused(const char *engine, const struct err *why, void *ctx)
{
	struct strbuf *text = ctx;

	strbuf_printf(text, "%s%s does not work: %s", text->len ? "; " : "", engine, why->text);
}

static int choose_engine(enum recorder_python *engine, struct strbuf *why, struct err *err)
{
	return engine_choose(engine, note_refused, why, err);
}

const struct doctor_machine doctor_machine_host = {
	.root = "",
	.open_event = event_open_fd,
	.try_bpf = try_bpf,
	.choose_engine = choose_engine,
};
