#ifndef PYPERF_JITDUMP_H
#define PYPERF_JITDUMP_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * jit-PID.dump: what a JIT (CPython's -X perf_jit, V8's --perf-prof, agents of the JVM) tells of
 * the code that it makes, one record after another, with the time of each, the code itself and, as
 * far as the runtime has them, its source lines and its unwinding tables
 * (linux tools/perf/Documentation/jitdump-specification.txt).
 *
 * The runtime writes while it runs, often through a buffer: a dump may end within a record.
 */
struct jitdump;

/* Unwinding tables of one function, as an ELF file has them in .eh_frame and .eh_frame_hdr. Their
 * addresses are relative to where they would lie behind the code: .eh_frame at the first multiple
 * of 8 behind it, .eh_frame_hdr directly behind that. */
struct jitdump_unwind {
	struct bytes eh_frame, eh_frame_hdr; /* eh_frame is empty where the runtime has none */
	uint64_t eh_frame_addr, eh_frame_hdr_addr;
};

/* Code that lies at an address from a moment on. */
struct jitdump_code {
	uint64_t time; /* ns, CLOCK_MONOTONIC; 0 where the dump has other times */
	uint64_t addr, size;
	uint64_t moved_from; /* its address until then; 0: it is new */
	const char *name;    /* raw; at most JITDUMP_NAME_MAX bytes, longer ones end in "..." */
	struct bytes code;   /* machine code */
	struct jitdump_unwind unwind;
	/* For jitdump_line(). */
	struct bytes lines;
	uint64_t line_count, lines_addr;
	uint32_t order; /* of its record */
};

/* Bounded: what lies beyond is refused and counted. */
#define JITDUMP_BYTES_MAX (UINT64_C(256) << 20)
#define JITDUMP_CODES_MAX (1u << 20)
#define JITDUMP_NAME_MAX 1024u

struct jitdump_head {
	uint32_t machine; /* of ELF; 0 where the runtime does not say (CPython 3.13.0) */
	uint32_t pid;	  /* in the runtime's namespace */
	uint64_t time;	  /* of its start, by a clock of the runtime's choice */
};

/*
 * Opens a dump that a process has mapped (perf's convention: the runtime maps its own dump, so that
 * a recording names it). `path` is in the process's tree and holds its number, as it is in its own
 * namespace. The fd, ERR_NOT_FOUND, or ERR_PERMISSION where it is not to be trusted
 * (safe_open_written()).
 */
int jitdump_open(const char *held, pid_t pid, pid_t ns_pid, uid_t uid, const char *path,
		 struct err *err);
/* Appends at most JITDUMP_BYTES_MAX; *refused: bytes that are too much. */
int jitdump_read(int fd, struct strbuf *text, uint64_t *refused, struct err *err);

/* The private section: per dump u32 pid, a blob (u32 length, bytes) with its path, a blob with its
 * bytes; little-endian. */
void jitdump_section_add(struct strbuf *section, uint32_t pid, const char *path, const void *text,
			 size_t len);
/* Steps through a section: false at the end (or at a broken entry, with section->bad). */
bool jitdump_section_next(struct bytes *section, uint32_t *pid, struct bytes *path,
			  struct bytes *text);

/* False where the bytes begin no dump. */
bool jitdump_head(const void *bytes, size_t len, struct jitdump_head *head);

/* Takes a copy of the bytes; everything lives until jitdump_free(). ERR_CORRUPT where they begin
 * no dump; what is broken further on is counted. */
int jitdump_parse(struct jitdump **dump, const void *bytes, size_t len, struct err *err);
void jitdump_free(struct jitdump *dump);

/* In order of time. */
size_t jitdump_count(const struct jitdump *dump);
const struct jitdump_code *jitdump_code(const struct jitdump *dump, size_t index);
/* How many came up to a time: while this is the same, so is what jitdump_find() finds. */
size_t jitdump_count_until(const struct jitdump *dump, uint64_t time);
/* The latest code that covers the address and is not younger than `time`; NULL where there is none
 * or it moved away. UINT64_MAX: as of the end. */
const struct jitdump_code *jitdump_find(const struct jitdump *dump, uint64_t addr, uint64_t time);
/* The source line of an address in the code; false where none is known. */
bool jitdump_line(const struct jitdump *dump, const struct jitdump_code *code, uint64_t addr,
		  const char **file, uint32_t *line);

const struct jitdump_head *jitdump_head_of(const struct jitdump *dump);
/* Records that make no sense or are beyond the bounds; all behind a broken one count as one. */
uint64_t jitdump_skipped(const struct jitdump *dump);

/* The number in ".../jit-NUMBER.dump", 0 for any other name. */
uint32_t jitdump_name_pid(const char *path);

#endif
