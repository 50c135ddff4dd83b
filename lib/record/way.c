#include "record/way.h"

#include "base/map.h"
#include "base/strbuf.h"
#include "process/proc.h"
#include "process/roots.h"
#include "symbol/elf.h"
#include "unwind/pointers.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROCESSES_MAX 64 /* of more, reading all maps takes too long */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static enum recorder_chain of_program(const char *path, struct strbuf *why)
{
	enum recorder_chain chain = RECORDER_CHAIN_DWARF;
	const char *name = base_name(path);
	uint64_t vaddr, size;
	struct elf_file *elf;

	if (elf_open(&elf, path, NULL) < 0) {
		strbuf_printf(why, "%s is no binary, and what it runs is not known", name);
		return chain;
	}
	if (!pointers_throughout(elf)) {
		strbuf_printf(why, "%s has no frame pointers", name);
	} else if (elf_section(elf, ".interp", &vaddr, &size)) {
		strbuf_printf(why, "%s loads libraries that may have no frame pointers", name);
	} else {
		strbuf_printf(why, "%s has frame pointers and loads no libraries", name);
		chain = RECORDER_CHAIN_FP;
	}
	elf_close(elf);
	return chain;
}

struct inspection {
	pid_t pid;
	struct roots *roots;
	struct map seen; /* hash of device and inode */
	struct strbuf *why;
	size_t binaries;
};

/* Not 0: one that has none. */
static int inspect(const struct proc_map *map, void *ctx)
{
	struct inspection *in = ctx;
	bool added, has;
	struct elf_file *elf;
	char path[32];
	struct stat st;
	int fd;

	/* The vDSO is leaves. */
	if (map->perms[2] != 'x' || map->path[0] == '[')
		return 0;
	if (map->path[0] != '/') {
		strbuf_printf(in->why, "process %d runs generated code", (int)in->pid);
		return 1;
	}
	if (!map_put(&in->seen, map_mix((uint64_t)map->maj << 32 | map->min, map->ino), &added) ||
	    !added)
		return 0;
	fd = proc_open_map(in->pid, map, roots_path(in->roots, in->pid), &st, NULL);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	has = fd >= 0 && elf_open(&elf, path, NULL) == 0;
	if (has) {
		has = pointers_throughout(elf);
		elf_close(elf);
	}
	if (fd >= 0)
		close(fd);
	if (!has)
		strbuf_printf(in->why, "%s has no frame pointers", base_name(map->path));
	in->binaries++;
	return !has;
}

static enum recorder_chain of_processes(const struct recorder_target *target, struct strbuf *why)
{
	struct inspection in = {.why = why, .roots = roots_new()};
	int lacking = !in.roots;

	for (size_t i = 0; i < target->tasks.len && !lacking; i++) {
		in.pid = target->tasks.items[i].pid;
		roots_note(in.roots, in.pid);
		lacking = proc_each_map(in.pid, inspect, &in, NULL);
	}
	if (!lacking && in.binaries)
		strbuf_str(why, "all binaries that are mapped have frame pointers");
	else if (!why->len)
		strbuf_str(why, "what is mapped is not known");
	map_fini(&in.seen);
	roots_free(in.roots);
	return lacking || !in.binaries ? RECORDER_CHAIN_DWARF : RECORDER_CHAIN_FP;
}

enum recorder_chain way_choose(const struct recorder_target *target, const char *program,
			       struct strbuf *why)
{
	if (target->kind == RECORDER_COMMAND && program)
		return of_program(program, why);
	if (target->kind == RECORDER_CPUS || target->tasks.len > PROCESSES_MAX) {
		strbuf_str(why, "anything may run");
		return RECORDER_CHAIN_DWARF;
	}
	return of_processes(target, why);
}

const char *way_name(enum recorder_chain chain)
{
	static const char *const names[] = {
		[RECORDER_CHAIN_AUTO] = "auto", [RECORDER_CHAIN_NONE] = "none",
		[RECORDER_CHAIN_FP] = "fp",	[RECORDER_CHAIN_DWARF] = "dwarf",
		[RECORDER_CHAIN_LBR] = "lbr",
	};

	return names[chain];
}

void way_lbr_attr(struct perf_event_attr *attr)
{
	attr->sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr->branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK |
				   PERF_SAMPLE_BRANCH_NO_CYCLES | PERF_SAMPLE_BRANCH_NO_FLAGS;
}

int way_lbr_probe(const struct event_list *events, struct err *err)
{
	for (size_t i = 0; i < events->len; i++) {
		struct perf_event_attr attr = events->items[i].attr;
		int fd;

		attr.sample_type |= PERF_SAMPLE_IP;
		attr.sample_period = 1u << 30;
		attr.freq = 0;
		attr.disabled = 1;
		way_lbr_attr(&attr);
		fd = event_open_fd(&attr, 0, -1, -1);
		if (fd >= 0) {
			close(fd);
			continue;
		}
		err_set(err, ERR_UNSUPPORTED,
			"--call-graph lbr: this machine does not record calls for %s: %s",
			events->items[i].name, strerror(-fd));
		err_hint(err, "it takes an Intel CPU (since Haswell), no virtual machine that "
			      "hides its last branch records, and hardware events such as cycles; "
			      "--call-graph auto works everywhere");
		return ERR_UNSUPPORTED;
	}
	return 0;
}
