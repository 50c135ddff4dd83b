#ifndef PYPERF_TEST_JITDUMP_MAKE_H
#define PYPERF_TEST_JITDUMP_MAKE_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Writes a dump as a runtime does, in either byte order. */
struct maker {
	struct strbuf out;
	bool swap;
};

static inline void make_u32(struct maker *m, uint32_t v)
{
	v = m->swap ? __builtin_bswap32(v) : v;
	strbuf_add(&m->out, &v, sizeof(v));
}

static inline void make_u64(struct maker *m, uint64_t v)
{
	v = m->swap ? __builtin_bswap64(v) : v;
	strbuf_add(&m->out, &v, sizeof(v));
}

static inline void make_head(struct maker *m, uint64_t flags)
{
	make_u32(m, 0x4a695444);
	make_u32(m, 1);
	make_u32(m, 48); /* longer than today's */
	make_u32(m, 183);
	make_u32(m, 0);
	make_u32(m, 4711);
	make_u64(m, 99);
	make_u64(m, flags);
	make_u64(m, 0);
}

static inline void make_record(struct maker *m, uint32_t id, uint32_t body, uint64_t time)
{
	make_u32(m, id);
	make_u32(m, 16 + body);
	make_u64(m, time);
}

static inline void make_load(struct maker *m, uint64_t time, uint64_t addr, const char *name,
			     const char *code, uint64_t index)
{
	uint32_t size = (uint32_t)strlen(code);

	make_record(m, 0, 40 + (uint32_t)strlen(name) + 1 + size, time);
	make_u32(m, 4711);
	make_u32(m, 4711);
	make_u64(m, addr);
	make_u64(m, addr);
	make_u64(m, size);
	make_u64(m, index);
	strbuf_add(&m->out, name, strlen(name) + 1);
	strbuf_add(&m->out, code, size);
}

static inline void make_move(struct maker *m, uint64_t time, uint64_t from, uint64_t to,
			     uint64_t size, uint64_t index)
{
	make_record(m, 1, 48, time);
	make_u32(m, 4711);
	make_u32(m, 4711);
	make_u64(m, to);
	make_u64(m, from);
	make_u64(m, to);
	make_u64(m, size);
	make_u64(m, index);
}

struct make_row {
	uint64_t addr;
	uint32_t line;
	const char *file;
};

static inline void make_lines(struct maker *m, uint64_t addr, const struct make_row *rows,
			      size_t count)
{
	uint32_t size = 16;

	for (size_t i = 0; i < count; i++)
		size += 16 + (uint32_t)strlen(rows[i].file) + 1;
	make_record(m, 2, size, 0);
	make_u64(m, addr);
	make_u64(m, count);
	for (size_t i = 0; i < count; i++) {
		make_u64(m, rows[i].addr);
		make_u32(m, rows[i].line);
		make_u32(m, 7);
		strbuf_add(&m->out, rows[i].file, strlen(rows[i].file) + 1);
	}
}

#endif
