/*
 * Unwinds every user stack of a recording by `perf record --call-graph dwarf` with each back end
 * and prints, as JSON, how many stacks are complete, why others are not, what a sample and a frame
 * cost with all tables warm, and how deep the stacks are; then what it would cost to store the
 * copies instead, as the recorder writes records: compressed by zstd, several at a time.
 *
 *	build/release/tests/bench/unwind FILE [BACK-END...]
 *
 * The maps of all processes are taken as of the end of the recording, so that the time is that of
 * unwinding alone. Nothing but the file and the binaries is read.
 */
#include "unwind/unwind.h"
#include "arch/arch.h"
#include "base/io.h"
#include "base/map.h"
#include "base/vec.h"
#include "data/data.h"
#include "perfmap/perfmap.h"
#include "process/process.h"
#include "ring/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <zstd.h>

#define MAX_FRAMES 512

struct sample {
	uint32_t pid;
	uint64_t generation;
	struct unwind_input input;
};

struct context {
	struct process_table *processes;
	struct data_file *file;
	struct {
		VEC_OF(struct sample)
	} samples;
	struct {
		VEC_OF(uint64_t)
	} hashes; /* of the addresses in each stack, as the first back end has them */
	struct {
		VEC_OF(size_t)
	} depths;     /* of each stack in bytes */
	uint32_t pid; /* whose stack is walked */
	struct perfmap *perfmap;
	uint32_t perfmap_pid;
};

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int find_module(void *ctx, uint64_t addr, struct unwind_module *module)
{
	struct context *context = ctx;
	const struct dso *dso;
	struct map_hit hit;

	if (!process_find(context->processes, context->pid, addr, false, &hit))
		return -1;
	dso = process_dso(context->processes, hit.dso);
	*module = (struct unwind_module){.id = hit.dso, .start = hit.start, .end = hit.end};
	if (dso->kind == DSO_ELF) {
		module->path = dso->path;
		module->file_offset = hit.file_offset - (addr - hit.start);
	} else if (dso->kind == DSO_VDSO) {
		module->image = (const void *)getauxval(AT_SYSINFO_EHDR);
		module->image_len = hit.end - hit.start;
	}
	return 0;
}

static int find_code(void *ctx, uint64_t addr, struct unwind_code *code)
{
	struct context *context = ctx;
	struct perfmap_entry entry;

	if (context->perfmap_pid != context->pid) {
		struct strbuf text = {0};
		char path[64];

		perfmap_free(context->perfmap);
		context->perfmap = NULL;
		context->perfmap_pid = context->pid;
		snprintf(path, sizeof(path), "/tmp/perf-%u.map", context->pid);
		if (io_read_file(path, &text, PERFMAP_BYTES_MAX, NULL) == 0)
			perfmap_parse(&context->perfmap, text.buf, text.len, NULL);
		strbuf_fini(&text);
	}
	if (!context->perfmap || !perfmap_find(context->perfmap, addr, &entry))
		return -1;
	*code = (struct unwind_code){
		.start = entry.start, .end = entry.start + entry.size, .python = entry.python};
	return 0;
}

static void take_record(struct context *context, const struct perf_event_header *header)
{
	struct record_sample sample;
	struct record_mmap mmap;
	struct record_task task;
	struct record_comm comm;
	const struct data_event *event = data_event(context->file, 0);

	if (header->type == PERF_RECORD_SAMPLE) {
		struct sample *new;

		if (!record_decode_sample(header, &event->attr, &sample))
			return;
		new = vec_push(&context->samples);
		new->pid = sample.id.pid;
		if (unwind_of_sample(arch_host(), event->attr.sample_regs_user, &sample,
				     &new->input) != 0 ||
		    new->input.regs.ip >= arch_host()->kernel_start)
			context->samples.len--;
	} else if (header->type == PERF_RECORD_MMAP || header->type == PERF_RECORD_MMAP2) {
		struct process_map map;

		if (!record_decode_mmap(header, &mmap))
			return;
		map = (struct process_map){
			.pid = mmap.pid,
			.start = mmap.addr,
			.len = mmap.len,
			.pgoff = mmap.pgoff,
			.path = mmap.filename,
			.kernel = (header->misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
				  PERF_RECORD_MISC_KERNEL};
		process_mmap(context->processes, &map, NULL);
	} else if (header->type == PERF_RECORD_FORK && record_decode_task(header, &task)) {
		if (!(header->misc & PERF_RECORD_MISC_FORK_EXEC))
			process_fork(context->processes, task.pid, task.tid, task.ppid, task.ptid,
				     NULL);
	} else if (header->type == PERF_RECORD_COMM && record_decode_comm(header, &comm)) {
		process_comm(context->processes, comm.pid, comm.tid, comm.comm, comm.exec, NULL);
	}
}

struct tally {
	size_t samples, frames, ends[UNWIND_ENDS], guessed;
	size_t differ; /* from what the first back end says */
	struct {
		VEC_OF(uint64_t)
	} depths;
	struct {
		VEC_OF(uint32_t)
	} blame;
};

static void walk_all(struct context *context, const struct unwind_backend *with,
		     struct unwinder *const *unwinders, struct tally *tally)
{
	static struct unwind_frame frames[MAX_FRAMES];

	for (size_t i = 0; i < context->samples.len; i++) {
		const struct sample *sample = &context->samples.items[i];
		struct unwind_stack stack = {.frames = frames, .max = MAX_FRAMES};
		uint64_t hash = 0;

		context->pid = sample->pid;
		with->stack(unwinders[i], &sample->input, &stack);
		if (!tally)
			continue;
		tally->samples++;
		tally->frames += stack.count;
		for (size_t n = 0; n < stack.count; n++)
			hash = map_mix(hash, frames[n].ip);
		if (context->hashes.len < context->samples.len) {
			*vec_push(&context->hashes) = hash;
			*vec_push(&context->depths) = frames[stack.count - 1].sp -
						      sample->input.regs.sp;
		}
		tally->differ += context->hashes.items[i] != hash;
		tally->ends[stack.end]++;
		tally->guessed += stack.guessed > 0;
		if (stack.end == UNWIND_COMPLETE)
			*vec_push(&tally->depths) = frames[stack.count - 1].sp -
						    sample->input.regs.sp;
		else
			*vec_push(&tally->blame) = stack.module;
	}
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void print_blame(const struct context *context, const struct tally *tally)
{
	size_t best = 0, count = 0;

	for (size_t i = 0; i < tally->blame.len; i++) {
		size_t same = 0;

		for (size_t j = 0; j < tally->blame.len && j < 10000; j++)
			same += tally->blame.items[j] == tally->blame.items[i];
		if (same > count) {
			count = same;
			best = i;
		}
	}
	if (count && tally->blame.items[best])
		printf(", \"blamed\": \"%s\"",
		       process_dso(context->processes, tally->blame.items[best])->path);
}

/* An unwinder per process: maps do not change any more. */
static void run(struct context *context, const struct unwind_backend *with)
{
	struct unwind_source source = {.module = find_module, .code = find_code, .ctx = context};
	struct unwind_files *files = unwind_files_new();
	struct unwinder **of = calloc(context->samples.len + 1, sizeof(struct unwinder *));
	struct unwind_statistics statistics;
	struct tally tally = {0};
	double cold, warm = 1e9;

	for (size_t i = 0; i < context->samples.len; i++) {
		for (size_t j = i; j-- > 0 && !of[i];)
			if (context->samples.items[j].pid == context->samples.items[i].pid)
				of[i] = of[j];
		if (!of[i])
			of[i] = with->open(files, &source, NULL);
	}
	cold = seconds();
	walk_all(context, with, of, NULL);
	cold = seconds() - cold;
	for (int round = 0; round < 3; round++) {
		double begin = seconds(), took;

		walk_all(context, with, of, NULL);
		took = seconds() - begin;
		warm = took < warm ? took : warm;
	}
	walk_all(context, with, of, &tally);
	unwind_files_statistics(files, &statistics);
	qsort(tally.depths.items, tally.depths.len, sizeof(uint64_t), compare);
	printf("{\"backend\": \"%s\", \"samples\": %zu, \"frames\": %zu, \"us_per_sample\": %.3f, "
	       "\"us_per_frame\": %.4f, \"first_us_per_sample\": %.3f, \"guessed\": %zu, "
	       "\"differ\": %zu, \"files\": %zu, \"addresses\": %zu, \"rules\": %zu, "
	       "\"bytes\": %zu",
	       with->name, tally.samples, tally.frames, warm / (double)tally.samples * 1e6,
	       warm / (double)tally.frames * 1e6, cold / (double)tally.samples * 1e6, tally.guessed,
	       tally.differ, statistics.files, statistics.addresses, statistics.rules,
	       statistics.bytes);
	for (int end = 0; end < UNWIND_ENDS; end++)
		if (tally.ends[end])
			printf(", \"%s\": %zu", unwind_end_text(end), tally.ends[end]);
	print_blame(context, &tally);
	if (tally.depths.len)
		for (int percent = 50; percent <= 100; percent += percent < 90 ? 40 : 5)
			printf(", \"depth_%d\": %llu", percent,
			       (unsigned long long)tally.depths
				       .items[(tally.depths.len - 1) * (size_t)percent / 100]);
	printf("}\n");
	for (size_t i = 0; i < context->samples.len; i++) {
		size_t j = 0;

		while (of[j] != of[i])
			j++;
		if (j == i)
			with->close(of[i]);
	}
	free(of);
	vec_fini(&tally.depths);
	vec_fini(&tally.blame);
	unwind_files_free(files);
}

#define STORED_AT_ONCE 16

/* `limit` bytes of each copy, or with 0 down to where the deepest frame begins. */
static void store(const struct context *context, size_t limit, const char *name)
{
	static char in[STORED_AT_ONCE << 16], out[ZSTD_COMPRESSBOUND(sizeof(in))];
	size_t len = 0, bytes = 0, count = context->samples.len;
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	double took = 0, begin;

	for (size_t i = 0; i < count; i++) {
		const struct sample *sample = &context->samples.items[i];
		size_t part = limit ? limit : context->depths.items[i];

		part = part < sample->input.stack_len ? part : sample->input.stack_len;
		memcpy(in + len, sample->input.stack, part);
		len += part;
		if (i % STORED_AT_ONCE != STORED_AT_ONCE - 1 && i + 1 < count)
			continue;
		begin = seconds();
		bytes += ZSTD_compressCCtx(zstd, out, sizeof(out), in, len, 1);
		took += seconds() - begin;
		len = 0;
	}
	ZSTD_freeCCtx(zstd);
	printf(", \"us_%s\": %.3f, \"bytes_%s\": %.1f", name, took / (double)count * 1e6, name,
	       (double)bytes / (double)count);
}

int main(int argc, char **argv)
{
	struct context context = {.processes = process_table_new()};
	struct data_record record;
	struct err err = {0};

	if (argc < 2 || data_open(&context.file, argv[1], &err) < 0) {
		fprintf(stderr, "unwind: %s\n", argc < 2 ? "name a recording" : err.text);
		return 1;
	}
	while (data_next(context.file, &record, &err) == 1)
		take_record(&context, record.header);
	for (const struct unwind_backend *const *with = unwind_backends(); *with; with++) {
		bool wanted = argc == 2;

		for (int i = 2; i < argc; i++)
			wanted |= strcmp(argv[i], (*with)->name) == 0;
		if (wanted)
			run(&context, *with);
	}
	if (argc == 2 && context.samples.len) {
		printf("{\"backend\": \"zstd\"");
		store(&context, 16384, "16384");
		store(&context, 8192, "8192");
		store(&context, 0, "stack");
		printf("}\n");
	}
	vec_fini(&context.samples);
	vec_fini(&context.depths);
	vec_fini(&context.hashes);
	perfmap_free(context.perfmap);
	process_table_free(context.processes);
	data_close(context.file);
	return 0;
}
