#include "record/doctor_probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool doctor_has_cap(const struct examination *exam, int cap)
{
	return exam->caps_known && !exam->doctor->place.user_namespace && (exam->caps >> cap & 1);
}

static bool has_bpf_caps(const struct examination *exam)
{
	return doctor_has_cap(exam, SYSTEM_CAP_SYS_ADMIN) ||
	       (doctor_has_cap(exam, SYSTEM_CAP_BPF) && doctor_has_cap(exam, SYSTEM_CAP_PERFMON));
}

/* The kernel */

void doctor_probe_symbols(struct examination *exam, struct doctor_line *line)
{
	struct err err = {0};
	long long restricted = -1;
	int shown = system_kernel_addresses(exam->machine->root, &err);

	system_number(exam->machine->root, "/proc/sys/kernel/kptr_restrict", &restricted, NULL);
	if (shown < 0)
		doctor_say_unknown(line, &err);
	else if (shown)
		doctor_say(line, DOCTOR_OK, "functions have names");
	else
		doctor_say(line, DOCTOR_NOTE,
			   "functions have no names: %s hides the kernel's addresses",
			   restricted == 0 ? "perf_event_paranoid above 1" : "kptr_restrict");
}

void doctor_probe_lockdown(struct examination *exam, struct doctor_line *line)
{
	struct err err = {0};
	char mode[32];
	int ret = system_choice(exam->machine->root, "/sys/kernel/security/lockdown", mode,
				sizeof(mode), &err);

	if (ret == ERR_NOT_FOUND)
		doctor_say(line, DOCTOR_OK, "none");
	else if (ret < 0)
		doctor_say_unknown(line, &err);
	else if (strcmp(mode, "confidentiality") == 0)
		doctor_say(line, DOCTOR_FAIL, "confidentiality: BPF may not read memory");
	else
		doctor_say(line, DOCTOR_OK, "%s", mode);
}

void doctor_probe_btf(struct examination *exam, struct doctor_line *line)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/sys/kernel/btf/vmlinux", exam->machine->root);
	if (access(path, R_OK) == 0)
		doctor_say(line, DOCTOR_OK, "the kernel describes its types");
	else
		doctor_say(line, DOCTOR_FAIL, "%s: %s", "/sys/kernel/btf/vmlinux", strerror(errno));
}

/* Rights */

static const struct {
	int bit;
	const char *name;
} capabilities[] = {
	{SYSTEM_CAP_BPF, "BPF"},
	{SYSTEM_CAP_PERFMON, "PERFMON"},
	{SYSTEM_CAP_SYS_ADMIN, "SYS_ADMIN"},
	{SYSTEM_CAP_SYS_PTRACE, "SYS_PTRACE"},
	{SYSTEM_CAP_SYSLOG, "SYSLOG"},
	{SYSTEM_CAP_IPC_LOCK, "IPC_LOCK"},
};

void doctor_probe_capabilities(struct examination *exam, struct doctor_line *line)
{
	struct strbuf have = {0};
	struct err err = {0};

	if (system_status(exam->machine->root, "CapEff", 16, &exam->caps, &err) < 0) {
		doctor_say_unknown(line, &err);
		return;
	}
	exam->caps_known = true;
	for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
		if (exam->caps >> capabilities[i].bit & 1)
			strbuf_printf(&have, "%s%s", have.len ? " " : "", capabilities[i].name);
	if (exam->doctor->place.user_namespace)
		doctor_say(line, DOCTOR_NOTE,
			   "%s, within a user namespace: the machine's are asked for",
			   have.len ? strbuf_text(&have) : "none");
	else
		doctor_say(line, has_bpf_caps(exam) ? DOCTOR_OK : DOCTOR_NOTE, "%s",
			   have.len ? strbuf_text(&have) : "none that help profiling");
	strbuf_fini(&have);
}

void doctor_probe_seccomp(struct examination *exam, struct doctor_line *line)
{
	int mode = exam->doctor->place.seccomp;

	if (mode < 0)
		doctor_say(line, DOCTOR_UNKNOWN, "not known: /proc/self/status does not say");
	else if (mode == 0)
		doctor_say(line, DOCTOR_OK, "no filter");
	else
		doctor_say(line, exam->opens ? DOCTOR_NOTE : DOCTOR_FAIL, "a filter is in force%s",
			   exam->opens ? ", and lets perf_event_open pass"
				       : ": it may be what forbids perf_event_open and bpf");
}

void doctor_probe_place(struct examination *exam, struct doctor_line *line)
{
	const struct system_place *place = &exam->doctor->place;
	const char *name = system_container_name(place->container);
	struct strbuf text = {0};

	if (name)
		strbuf_printf(&text, "signs of %s (%s)", name, place->sign);
	else
		strbuf_str(&text, "no sign of one");
	strbuf_printf(&text, "; %s pids, %s users", place->pid_namespace ? "own" : "the machine's",
		      place->user_namespace ? "own" : "the machine's");
	doctor_say(line, place->user_namespace ? DOCTOR_NOTE : DOCTOR_OK, "%s", strbuf_text(&text));
	strbuf_fini(&text);
}

void doctor_probe_ptrace(struct examination *exam, struct doctor_line *line)
{
	struct err err = {0};
	long long scope;
	int ret = system_number(exam->machine->root, "/proc/sys/kernel/yama/ptrace_scope", &scope,
				&err);

	if (ret == ERR_NOT_FOUND)
		scope = 0; /* built without yama */
	else if (ret < 0)
		doctor_say_unknown(line, &err);
	if (ret < 0 && ret != ERR_NOT_FOUND)
		return;
	if (scope < 3 && doctor_has_cap(exam, SYSTEM_CAP_SYS_PTRACE))
		doctor_say(line, DOCTOR_OK, "every process (CAP_SYS_PTRACE)");
	else if (scope == 0)
		doctor_say(line, DOCTOR_OK, "one's own processes");
	else
		doctor_say(line, DOCTOR_NOTE, "%s (yama/ptrace_scope is %lld)",
			   scope == 1 ? "only programs that pyperf starts" : "nothing", scope);
}
