#include "record/doctor_probe.h"

/* A sysctl is the host's; a container needs what its runtime keeps from it. */

#define SETCAP "sudo setcap cap_bpf,cap_perfmon=ep \"$(command -v pyperf)\""
#define KUBECTL "kubectl debug --profile=sysadmin"

static const struct doctor_remedy remedies[] = {
	[REMEDY_OPEN] = {"sudo sysctl kernel.perf_event_paranoid=1", "--cap-add PERFMON",
			 "--cap-add PERFMON", KUBECTL},
	[REMEDY_WALK] = {SETCAP ", or run as root", "--cap-add BPF --cap-add PERFMON",
			 "sudo podman run --cap-add BPF --cap-add PERFMON", KUBECTL},
	[REMEDY_TRACE] = {"run as root, or sudo sysctl kernel.yama.ptrace_scope=0",
			  "--cap-add SYS_PTRACE", "--cap-add SYS_PTRACE", KUBECTL},
	[REMEDY_NAME_KERNEL] = {"sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1",
				"--cap-add SYSLOG", "--cap-add SYSLOG", KUBECTL},
	[REMEDY_LOCK] = {"sudo sysctl kernel.perf_event_mlock_kb=2112", "--ulimit memlock=-1",
			 "--ulimit memlock=-1", KUBECTL},
	[REMEDY_READ_TRACEFS] = {"run as root",
				 "as root, with -v /sys/kernel/tracing:/sys/kernel/tracing:ro",
				 "as root, with -v /sys/kernel/tracing:/sys/kernel/tracing:ro",
				 "a hostPath volume of /sys/kernel/tracing"},
	[REMEDY_TRACEFS] = {"sudo mount -t tracefs tracefs /sys/kernel/tracing, and run as root",
			    "-v /sys/kernel/tracing:/sys/kernel/tracing:ro",
			    "-v /sys/kernel/tracing:/sys/kernel/tracing:ro",
			    "a hostPath volume of /sys/kernel/tracing"},
	[REMEDY_FILTER] = {NULL,
			   "--cap-add PERFMON --cap-add BPF, or --security-opt "
			   "seccomp=unconfined",
			   "--cap-add PERFMON --cap-add BPF, or --security-opt seccomp=unconfined",
			   KUBECTL},
	[REMEDY_NAMESPACE] = {"run outside of the user namespace", "no userns-remap: --userns=host",
			      "rootful: sudo podman run", "hostUsers: true"},
	[REMEDY_PROCESS] = {"run as root, or as the user of the process",
			    "--pid=host --cap-add SYS_PTRACE", "--pid=host --cap-add SYS_PTRACE",
			    KUBECTL " --target=CONTAINER"},
	[REMEDY_COUNT] = {"hardware events of a virtual machine are its host's to pass through; "
			  "sudo sysctl kernel.nmi_watchdog=0 frees a counter",
			  NULL, NULL, NULL},
	[REMEDY_RATE] = {"sudo sysctl kernel.perf_cpu_time_max_percent=0 "
			 "kernel.perf_event_max_sample_rate=100000",
			 NULL, NULL, NULL},
	[REMEDY_DEPTH] = {"sudo sysctl kernel.perf_event_max_stack=127", NULL, NULL, NULL},
	[REMEDY_LOCKDOWN] = {"boot without lockdown=confidentiality", NULL, NULL, NULL},
	[REMEDY_BTF] = {"boot a kernel with CONFIG_DEBUG_INFO_BTF, as distributions' are",
			"-v /sys/kernel/btf:/sys/kernel/btf:ro",
			"-v /sys/kernel/btf:/sys/kernel/btf:ro",
			"a hostPath volume of /sys/kernel/btf"},
	[REMEDY_CPUS] = {"sudo sysctl kernel.perf_event_paranoid=0", "--cap-add PERFMON",
			 "--cap-add PERFMON", KUBECTL},
};

const struct doctor_remedy *doctor_remedy(enum doctor_need need)
{
	return need == REMEDY_NONE ? NULL : &remedies[need];
}
