#ifndef PYPERF_PERFMAP_H
#define PYPERF_PERFMAP_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * perf-PID.map: "START SIZE name" lines, hexadecimal, that a JIT (CPython's -X perf, Node, .NET)
 * writes to /tmp while it runs. The name is the rest of the line. A later entry wins over earlier
 * ones it overlaps, since a map is appended to when addresses are reused. CPython's entries are
 * named "py::QUALNAME:FILE".
 */
struct perfmap;

struct perfmap_entry {
	uint64_t start, size; /* of the range around the address that no later entry took */
	const char *name;     /* valid until perfmap_free(); raw */
	bool python;	      /* "py::": then qualname and filename are set, not NUL-terminated */
	const char *qualname, *filename;
	size_t qualname_len, filename_len;
};

/* Bounded: lines beyond PERFMAP_LINES_MAX and bytes beyond PERFMAP_BYTES_MAX are refused and
 * counted. Lines that are no entry are skipped and counted. Longer names end in "...". */
#define PERFMAP_LINES_MAX 4000000u
#define PERFMAP_BYTES_MAX (128u << 20)
#define PERFMAP_NAME_MAX 1024u

int perfmap_parse(struct perfmap **map, const char *text, size_t len, struct err *err);
void perfmap_free(struct perfmap *map);
/* Code whose name is known otherwise, split as a map's. */
void perfmap_entry_of(uint64_t start, uint64_t size, const char *name, struct perfmap_entry *entry);
bool perfmap_find(const struct perfmap *map, uint64_t addr, struct perfmap_entry *entry);
/* Disjoint ranges, once overlaps are resolved. */
size_t perfmap_count(const struct perfmap *map);
uint64_t perfmap_skipped(const struct perfmap *map);

/*
 * Opens the map of a live or just ended process: /proc/PID/root/tmp/perf-NSPID.map while it lives,
 * else /tmp/perf-NSPID.map of the tree that is held for it, or ours, where `ns_pid` was noted
 * before. The fd, ERR_NOT_FOUND where there is none, ERR_PERMISSION with the reason where it is not
 * to be trusted (safe_open_written()).
 */
int perfmap_open(const char *held, pid_t pid, pid_t ns_pid, uid_t uid, struct err *err);
/* Appends whole lines, as far as PERFMAP_BYTES_MAX; *refused: bytes that are too much. */
int perfmap_read(int fd, struct strbuf *text, uint64_t *refused, struct err *err);

/* The private section: per map u32 pid and a blob (u32 length, bytes) of its text, little-endian.
 */
void perfmap_section_add(struct strbuf *section, uint32_t pid, const char *text, size_t len);
/* Steps through a section: false at the end (or at a broken entry, with section->bad). */
bool perfmap_section_next(struct bytes *section, uint32_t *pid, struct bytes *text);

#endif
