#include "record/synth.h"

#include "base/strbuf.h"
#include "process/proc.h"
#include "record/native.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

static void begin(struct strbuf *record)
{
	strbuf_extend(record, sizeof(struct perf_event_header));
}

static void put_text(struct strbuf *record, const char *text)
{
	strbuf_add(record, text, strlen(text) + 1);
	strbuf_pad(record, sizeof(uint64_t));
}

/* Adds the trailer and writes the record. */
static int finish(const struct synth *synth, struct strbuf *record, uint32_t type, uint16_t misc,
		  struct err *err)
{
	struct perf_event_header *header;
	int ret;

	strbuf_u64(record, 0); /* pid, tid */
	strbuf_u64(record, 0); /* time: before everything */
	strbuf_u64(record, 0); /* cpu */
	strbuf_u64(record, synth->id);
	if (strbuf_failed(record)) {
		strbuf_fini(record);
		return err_nomem(err);
	}
	header = (struct perf_event_header *)record->buf;
	header->type = type;
	header->misc = misc;
	header->size = (uint16_t)record->len;
	ret = synth->native ? native_sideband(synth->native, header, err) : 0;
	if (!ret)
		ret = synth->out->record(synth->out, header, err);
	strbuf_fini(record);
	return ret;
}

int synth_kernel_map(const struct synth *synth, uint64_t start, uint64_t len, uint64_t pgoff,
		     const char *name, struct err *err)
{
	struct strbuf record = {0};

	begin(&record);
	strbuf_u32(&record, UINT32_MAX);
	strbuf_u32(&record, 0);
	strbuf_u64(&record, start);
	strbuf_u64(&record, len);
	strbuf_u64(&record, pgoff);
	put_text(&record, name);
	return finish(synth, &record, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, err);
}

int synth_map(const struct synth *synth, uint32_t pid, const struct proc_map *map, const char *path,
	      struct err *err)
{
	struct strbuf record = {0};
	uint32_t prot = 0;

	/* Longer ones do not fit into a record; the kernel says so in the same way. */
	if (strlen(path) >= 4096)
		path = "//toolong";
	prot |= map->perms[0] == 'r' ? PROT_READ : 0;
	prot |= map->perms[1] == 'w' ? PROT_WRITE : 0;
	prot |= map->perms[2] == 'x' ? PROT_EXEC : 0;
	begin(&record);
	strbuf_u32(&record, pid);
	strbuf_u32(&record, pid);
	strbuf_u64(&record, map->start);
	strbuf_u64(&record, map->end - map->start);
	strbuf_u64(&record, map->pgoff);
	strbuf_u32(&record, map->maj);
	strbuf_u32(&record, map->min);
	strbuf_u64(&record, map->ino);
	strbuf_u64(&record, 0); /* generation of the inode: /proc does not tell */
	strbuf_u32(&record, prot);
	strbuf_u32(&record, map->perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE);
	put_text(&record, path);
	return finish(synth, &record, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, err);
}

int synth_comm(const struct synth *synth, uint32_t pid, uint32_t tid, const char *comm,
	       struct err *err)
{
	struct strbuf record = {0};

	begin(&record);
	strbuf_u32(&record, pid);
	strbuf_u32(&record, tid);
	put_text(&record, comm);
	return finish(synth, &record, PERF_RECORD_COMM, PERF_RECORD_MISC_USER, err);
}

int synth_thread(const struct synth *synth, uint32_t pid, uint32_t tid, struct err *err)
{
	struct strbuf record = {0};

	begin(&record);
	strbuf_u32(&record, pid);
	strbuf_u32(&record, pid);
	strbuf_u32(&record, tid);
	strbuf_u32(&record, pid);
	strbuf_u64(&record, 0);
	return finish(synth, &record, PERF_RECORD_FORK, 0, err);
}
