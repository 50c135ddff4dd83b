#include "record/kernel.h"

#include "base/io.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "symbol/kallsyms.h"

#include <elf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_NAME "[kernel.kallsyms]"

/* PERF_RECORD_MMAP of pid -1 with the trailer that all our events share. */
static int store_map(struct data_writer *writer, uint64_t id, uint64_t start, uint64_t len,
		     uint64_t pgoff, const char *name, struct err *err)
{
	struct strbuf record = {0};
	struct perf_event_header *header;
	int ret;

	strbuf_extend(&record, sizeof(*header));
	strbuf_u32(&record, UINT32_MAX);
	strbuf_u32(&record, 0);
	strbuf_u64(&record, start);
	strbuf_u64(&record, len);
	strbuf_u64(&record, pgoff);
	strbuf_add(&record, name, strlen(name) + 1);
	strbuf_pad(&record, sizeof(uint64_t));
	strbuf_u64(&record, 0); /* pid, tid */
	strbuf_u64(&record, 0); /* time: before everything */
	strbuf_u64(&record, 0); /* cpu */
	strbuf_u64(&record, id);
	if (strbuf_failed(&record))
		return err_nomem(err);
	header = (struct perf_event_header *)record.buf;
	header->type = PERF_RECORD_MMAP;
	header->misc = PERF_RECORD_MISC_KERNEL;
	header->size = (uint16_t)record.len;
	ret = data_write(writer, record.buf, record.len, err);
	strbuf_fini(&record);
	return ret;
}

/* /proc/modules: "name size refcount users state address". */
static int store_modules(struct data_writer *writer, uint64_t id, struct err *err)
{
	struct strbuf text = {0};
	char *line, *rest;
	int ret = 0;

	if (io_read_file("/proc/modules", &text, 1 << 22, NULL) < 0 || !text.len) {
		strbuf_fini(&text);
		return 0;
	}
	for (line = strtok_r(text.buf, "\n", &rest); !ret && line;
	     line = strtok_r(NULL, "\n", &rest)) {
		unsigned long long size, start;
		char module[64], name[80];

		if (sscanf(line, "%63s %llu %*s %*s %*s %llx", module, &size, &start) != 3 ||
		    !start)
			continue;
		snprintf(name, sizeof(name), "[%s]", module);
		ret = store_map(writer, id, start, size, 0, name, err);
	}
	strbuf_fini(&text);
	return ret;
}

int kernel_store_maps(struct data_writer *writer, uint64_t id, struct err *err)
{
	struct kallsyms *symbols;
	uint64_t start, end;
	struct err why = {0};
	int ret;

	if (kallsyms_open(&symbols, NULL, &why) < 0) {
		log_info("kernel functions will have no names: %s", why.text);
		return 0;
	}
	start = kallsyms_address(symbols, "_text");
	if (!start)
		start = kallsyms_address(symbols, "_stext");
	end = kallsyms_address(symbols, "_etext");
	kallsyms_close(symbols);
	if (!start)
		return 0;
	/* perf writes the address of the reference symbol as pgoff, and its name in the name. */
	ret = store_map(writer, id, start, end > start ? end - start : UINT64_MAX - start, start,
			KERNEL_NAME "_text", err);
	return ret ? ret : store_modules(writer, id, err);
}

int kernel_store_build_id(struct data_writer *writer, struct err *err)
{
	struct strbuf notes = {0};
	struct bytes view;
	int ret = 0;

	if (io_read_file("/sys/kernel/notes", &notes, 1 << 20, NULL) < 0) {
		strbuf_fini(&notes);
		return 0;
	}
	view = bytes_of(strbuf_text(&notes), notes.len);
	while (!ret && !view.bad && bytes_left(&view)) {
		uint32_t name_len = bytes_u32(&view), len = bytes_u32(&view);
		uint32_t type = bytes_u32(&view);
		const char *name = bytes_take(&view, (name_len + 3u) & ~3u);
		const uint8_t *id = bytes_take(&view, (len + 3u) & ~3u);

		if (!view.bad && type == NT_GNU_BUILD_ID && name_len == 4 &&
		    memcmp(name, "GNU", 4) == 0)
			ret = data_writer_build_id(writer, -1, PERF_RECORD_MISC_KERNEL, KERNEL_NAME,
						   id, len, err);
	}
	strbuf_fini(&notes);
	return ret;
}
