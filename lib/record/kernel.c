#include "record/kernel.h"

#include "base/io.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "data/writer.h"
#include "record/synth.h"

#include <elf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_NAME "[kernel.kallsyms]"
#define SYMBOLS "/proc/kallsyms"
#define TEXT_LINES 10000

/* Address of the kernel's text, or 0. The file has a hundred thousand lines, sorted by address: its
 * beginning is enough, and takes no tenth of a second. */
static uint64_t text_start(void)
{
	FILE *file = fopen(SYMBOLS, "re");
	char line[512], name[128];
	uint64_t start = 0;

	for (int i = 0; file && i < TEXT_LINES && fgets(line, sizeof(line), file); i++) {
		unsigned long long address;

		if (sscanf(line, "%llx %*c %127s", &address, name) != 2)
			continue;
		if (strcmp(name, "_text") == 0 || (!start && strcmp(name, "_stext") == 0))
			start = address;
		if (strcmp(name, "_text") == 0)
			break;
	}
	if (file)
		fclose(file);
	return start;
}

struct module {
	char name[80];
	unsigned long long start, size;
};

struct modules {
	VEC_OF(struct module)
};

/* /proc/modules: "name size refcount users state address"; not there without modules. */
static void read_modules(struct modules *modules)
{
	struct strbuf text = {0};
	char *line, *rest;

	if (io_read_file("/proc/modules", &text, 1 << 22, NULL) < 0 || !text.len) {
		strbuf_fini(&text);
		return;
	}
	for (line = strtok_r(text.buf, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct module module, *added;
		char name[64];

		if (sscanf(line, "%63s %llu %*s %*s %*s %llx", name, &module.size, &module.start) !=
			    3 ||
		    !module.start)
			continue;
		snprintf(module.name, sizeof(module.name), "[%s]", name);
		added = vec_push(modules);
		if (added)
			*added = module;
	}
	strbuf_fini(&text);
}

int kernel_store_maps(const struct synth *synth, bool sampled, struct err *err)
{
	uint64_t start = text_start(), end = UINT64_MAX;
	struct modules modules = {0};
	int ret;

	if (!start) {
		if (sampled)
			log_info("kernel functions will have no names: the kernel hides its "
				 "addresses (kernel.kptr_restrict)");
		return 0;
	}
	read_modules(&modules);
	/* The kernel's map reaches to the first module, as perf has it. */
	for (size_t i = 0; i < modules.len; i++)
		if (modules.items[i].start > start && modules.items[i].start < end)
			end = modules.items[i].start;
	/* perf writes the address of the reference symbol as pgoff, and its name in the name. */
	ret = synth_kernel_map(synth, start, end - start, start, KERNEL_NAME "_text", err);
	for (size_t i = 0; !ret && i < modules.len; i++)
		ret = synth_kernel_map(synth, modules.items[i].start, modules.items[i].size, 0,
				       modules.items[i].name, err);
	vec_fini(&modules);
	return ret;
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
