#ifndef PYPERF_DOCTOR_PROBE_H
#define PYPERF_DOCTOR_PROBE_H

#include "record/doctor.h"

/* What the files of the doctor share; nobody else includes this. */

/* What a check is given, and what one leaves for those after it. */
struct examination {
	struct doctor *doctor;
	const struct doctor_machine *machine;
	pid_t pid;  /* 0: none was asked for */
	bool opens; /* events can be opened */
	bool lines; /* the engine that auto takes gives lines */
};

typedef void doctor_probe(struct examination *exam, struct doctor_line *line);

/* doctor_events.c */
doctor_probe doctor_probe_open, doctor_probe_paranoid, doctor_probe_hardware, doctor_probe_pmus,
	doctor_probe_kernel_side, doctor_probe_whole_cpus, doctor_probe_tracepoints,
	doctor_probe_rate, doctor_probe_stack, doctor_probe_mlock;
/* doctor_system.c */
doctor_probe doctor_probe_place, doctor_probe_capabilities, doctor_probe_seccomp,
	doctor_probe_ptrace, doctor_probe_symbols, doctor_probe_lockdown, doctor_probe_btf;

/* Is it in force for the machine? Capabilities of a user namespace open no event and load no
 * program. */
bool doctor_has_cap(const struct examination *exam, enum privilege_cap cap);

void doctor_say(struct doctor_line *line, enum doctor_verdict verdict, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* What cannot be read, or says what it should not. */
void doctor_say_unknown(struct doctor_line *line, const struct err *err);

#endif
