#include "record/doctor_probe.h"

#include "process/system.h"

#include <string.h>

bool doctor_has_cap(const struct examination *exam, enum privilege_cap cap)
{
	return !exam->doctor->privilege.user_namespace &&
	       privilege_has(&exam->doctor->privilege, cap);
}

/* The kernel */

void doctor_probe_symbols(struct examination *exam, struct doctor_line *line)
{
	struct err err = {0};
	int shown = system_kernel_addresses(exam->machine->root, &err);

	if (shown < 0)
		doctor_say_unknown(line, &err);
	else if (shown)
		doctor_say(line, DOCTOR_OK, "functions have names");
	else
		doctor_say(line, DOCTOR_NOTE,
			   "functions have no names: %s hides the kernel's addresses",
			   exam->doctor->privilege.kptr_restrict == 0
				   ? "perf_event_paranoid above 1"
				   : "kptr_restrict");
}

void doctor_probe_lockdown(struct examination *exam, struct doctor_line *line)
{
	static const char *const texts[] = {
		[PRIVILEGE_LOCKDOWN_NONE] = "none",
		[PRIVILEGE_LOCKDOWN_INTEGRITY] = "integrity, which is not in the way",
		[PRIVILEGE_LOCKDOWN_CONFIDENTIALITY] = "confidentiality: BPF may not read memory",
	};
	enum privilege_lockdown lockdown = exam->doctor->privilege.lockdown;

	doctor_say(line, lockdown == PRIVILEGE_LOCKDOWN_CONFIDENTIALITY ? DOCTOR_FAIL : DOCTOR_OK,
		   "%s", texts[lockdown]);
}

void doctor_probe_btf(struct examination *exam, struct doctor_line *line)
{
	if (exam->doctor->privilege.btf)
		doctor_say(line, DOCTOR_OK, "the kernel describes its types");
	else
		doctor_say(line, DOCTOR_FAIL,
			   "no /sys/kernel/btf/vmlinux: the kernel does not describe its types");
}

/* Rights */

static const struct {
	enum privilege_cap cap;
	const char *name;
} capabilities[] = {
	{PRIVILEGE_BPF, "BPF"},
	{PRIVILEGE_PERFMON, "PERFMON"},
	{PRIVILEGE_SYS_ADMIN, "SYS_ADMIN"},
	{PRIVILEGE_SYS_PTRACE, "SYS_PTRACE"},
	{PRIVILEGE_SYSLOG, "SYSLOG"},
	{PRIVILEGE_IPC_LOCK, "IPC_LOCK"},
};

void doctor_probe_capabilities(struct examination *exam, struct doctor_line *line)
{
	const struct privilege *privilege = &exam->doctor->privilege;
	struct strbuf have = {0};

	if (!privilege->known) {
		doctor_say(line, DOCTOR_UNKNOWN, "not known: /proc/self/status does not say");
		return;
	}
	for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
		if (privilege_has(privilege, capabilities[i].cap))
			strbuf_printf(&have, "%s%s", have.len ? " " : "", capabilities[i].name);
	if (privilege->user_namespace)
		doctor_say(line, DOCTOR_NOTE,
			   "%s, within a user namespace: the machine's are asked for",
			   have.len ? strbuf_text(&have) : "none");
	else
		doctor_say(line, privilege_bpf(privilege) ? DOCTOR_OK : DOCTOR_NOTE, "%s",
			   have.len ? strbuf_text(&have) : "none that help profiling");
	line->need = (int)privilege_explain(privilege, PRIVILEGE_NEED_BPF);
	strbuf_fini(&have);
}

void doctor_probe_seccomp(struct examination *exam, struct doctor_line *line)
{
	if (!exam->doctor->privilege.seccomp)
		doctor_say(line, DOCTOR_OK, "no filter");
	else
		doctor_say(line, exam->opens ? DOCTOR_NOTE : DOCTOR_FAIL, "a filter is in force%s",
			   exam->opens ? ", and lets perf_event_open pass"
				       : ": it may be what forbids perf_event_open and bpf");
}

void doctor_probe_place(struct examination *exam, struct doctor_line *line)
{
	const struct privilege *privilege = &exam->doctor->privilege;
	const char *name = doctor_place_name(privilege->place);
	bool lost = privilege->user_namespace || privilege->foreign_proc;
	struct strbuf text = {0};

	if (name)
		strbuf_printf(&text, "signs of %s (%s)", name, privilege->sign);
	else
		strbuf_str(&text, "no sign of one");
	strbuf_printf(&text, "; %s pids, %s users%s",
		      privilege->pid_namespace ? "own" : "the machine's",
		      privilege->user_namespace ? "own" : "the machine's",
		      privilege->foreign_proc ? "; /proc is of another pid namespace" : "");
	doctor_say(line, lost ? DOCTOR_NOTE : DOCTOR_OK, "%s", strbuf_text(&text));
	if (privilege->foreign_proc)
		line->need = PRIVILEGE_NEED_PROC;
	strbuf_fini(&text);
}

void doctor_probe_ptrace(struct examination *exam, struct doctor_line *line)
{
	int scope = exam->doctor->privilege.ptrace_scope;

	if (scope < 3 && doctor_has_cap(exam, PRIVILEGE_SYS_PTRACE))
		doctor_say(line, DOCTOR_OK, "every process (CAP_SYS_PTRACE)");
	else if (scope <= 0)
		doctor_say(line, DOCTOR_OK, "one's own processes%s",
			   scope == PRIVILEGE_UNKNOWN ? " (no Yama)" : "");
	else
		doctor_say(line, DOCTOR_NOTE, "%s (yama/ptrace_scope is %d)",
			   scope == 1 ? "only programs that pyperf starts" : "nothing", scope);
}
