#include "output/export.h"
#include "output/perf_image.h"

#include "arch/arch.h"
#include "base/draft.h"
#include "base/map.h"
#include "data/writer.h"
#include "ring/record.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A recording for perf itself. Python functions, and all else that perf could not name, stand in an
 * ELF image beside the file, each line at an address of its own (as `perf inject --jit` does for
 * what was compiled); stacks are whole call chains of the merged frames.
 *
 * Every file that was sampled is mapped at an address of its own, the same in all processes: so an
 * address says file and offset, which is what perf makes of addresses anyway. Those of the kernel
 * stay, and with them the records that say where it and its modules were.
 */
#define BASE 0x10000000000u  /* of the first file */
#define STRIDE 0x1000000000u /* from one to the next: larger than any */
#define FILES_MAX 1024
#define CHAIN_MAX 8000

struct perf_data {
	const struct export_options *options;
	const struct profile *profile;
	struct data_writer *writer;
	struct strbuf record, image_path;
	struct image image;
	struct map files; /* string of the profile -> number, from 1; 0 is the image */
	struct {
		VEC_OF(uint32_t)
	} file_list;
	uint64_t *addresses;  /* by frame */
	uint32_t *event_ids;  /* by event of the profile, 0: not written */
	struct map mapped;    /* pid << 32 | file: has its MMAP2 */
	struct map described; /* threads of the profile that have their COMM */
	struct {
		VEC_OF(uint64_t)
	} chain;
};

/* The image: frames that need it, by function and line. */

struct wanted {
	uint32_t function, line, frame;
};

static int by_place(const void *a, const void *b)
{
	const struct wanted *one = a, *two = b;

	if (one->function != two->function)
		return one->function < two->function ? -1 : 1;
	if (one->line != two->line)
		return one->line < two->line ? -1 : 1;
	return one->frame < two->frame ? -1 : one->frame > two->frame;
}

static uint64_t base_of(uint64_t number)
{
	return BASE + number * STRIDE;
}

static int make_image(struct perf_data *p, struct wanted *wanted, size_t count, struct err *err)
{
	qsort(wanted, count, sizeof(*wanted), by_place);
	for (size_t i = 0; i < count; i++) {
		const struct wanted *w = &wanted[i], *before = i ? &wanted[i - 1] : NULL;
		const struct profile_function *f = profile_function(p->profile, w->function);
		struct image_line *line;

		if (!before || before->function != w->function || before->line != w->line) {
			line = vec_push(&p->image.lines);
			if (!line)
				return err_nomem(err);
			line->function = export_function_name(p->profile, w->function);
			if (before && before->function == w->function)
				line->function = line[-1].function;
			line->file = f->kind == FRAME_PYTHON ? profile_text(p->profile, f->file)
							     : NULL;
			line->line = w->line ? w->line : f->line;
		}
		p->addresses[w->frame] = p->image.lines.len - 1;
	}
	image_lay_out(&p->image);
	for (size_t i = 0; i < count; i++) {
		uint64_t *address = &p->addresses[wanted[i].frame];

		*address = base_of(0) + p->image.lines.items[*address].address;
	}
	return 0;
}

/* The number of a file; 0 where there are too many or memory ran out. */
static uint64_t number_file(struct perf_data *p, uint32_t file)
{
	uint64_t *slot = map_put(&p->files, file, NULL);
	uint32_t *item;

	if (!slot || *slot || p->file_list.len == FILES_MAX)
		return slot ? *slot : 0;
	item = vec_push(&p->file_list);
	if (!item)
		return 0;
	*item = file;
	return *slot = p->file_list.len;
}

static int give_addresses(struct perf_data *p, struct err *err)
{
	size_t frames = profile_frame_count(p->profile), count = 0;
	struct wanted *wanted = malloc((frames + 1) * sizeof(*wanted));
	int rc;

	p->addresses = calloc(frames + 1, sizeof(*p->addresses));
	if (!wanted || !p->addresses) {
		free(wanted);
		return err_nomem(err);
	}
	for (uint32_t i = 0; i < frames; i++) {
		const struct profile_frame *frame = profile_frame(p->profile, i);
		const struct profile_function *f = profile_function(p->profile, frame->function);
		uint64_t offset, number = 0;

		if (f->kind == FRAME_NATIVE && profile_frame_offset(p->profile, i, &offset) &&
		    offset < STRIDE)
			number = number_file(p, f->file);
		if (number)
			p->addresses[i] = base_of(number) + offset;
		else if (f->kind == FRAME_KERNEL)
			p->addresses[i] = frame->addr;
		else
			wanted[count++] = (struct wanted){frame->function, frame->line, i};
	}
	rc = make_image(p, wanted, count, err);
	free(wanted);
	return rc;
}

/* Records. */

static void begin(struct perf_data *p, uint32_t type, uint16_t misc)
{
	const struct perf_event_header header = {.type = type, .misc = misc};

	strbuf_reset(&p->record);
	strbuf_add(&p->record, &header, sizeof(header));
}

static int end(struct perf_data *p, struct err *err)
{
	struct perf_event_header *header = (void *)p->record.buf;

	if (strbuf_failed(&p->record))
		return err_nomem(err);
	header->size = (uint16_t)p->record.len;
	return data_write(p->writer, p->record.buf, p->record.len, err);
}

/* Behind records that are no samples: TID, TIME, CPU, IDENTIFIER. */
static int end_with_id(struct perf_data *p, uint32_t pid, uint32_t tid, uint64_t time,
		       struct err *err)
{
	strbuf_u32(&p->record, pid);
	strbuf_u32(&p->record, tid);
	strbuf_u64(&p->record, time);
	strbuf_u64(&p->record, 0);
	strbuf_u64(&p->record, 1);
	return end(p, err);
}

static void add_padded(struct perf_data *p, const char *text)
{
	strbuf_add(&p->record, text, strnlen(text, PATH_MAX - 1));
	strbuf_u8(&p->record, 0);
	strbuf_pad(&p->record, 8);
}

static int put_map(struct perf_data *p, const struct profile_thread *thread, uint64_t number,
		   uint64_t time, struct err *err)
{
	const char *path = number ? profile_text(p->profile, p->file_list.items[number - 1])
				  : strbuf_text(&p->image_path);
	bool added;

	if (!map_put(&p->mapped, (uint64_t)thread->pid << 32 | number, &added))
		return err_nomem(err);
	if (!added)
		return 0;
	begin(p, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
	strbuf_u32(&p->record, thread->pid);
	strbuf_u32(&p->record, thread->pid);
	strbuf_u64(&p->record, base_of(number));
	strbuf_u64(&p->record, number ? STRIDE : (p->image.size + 4095) & ~(uint64_t)4095);
	strbuf_u64(&p->record, 0); /* from the start of the file */
	strbuf_u64(&p->record, 0);
	strbuf_u64(&p->record, 0);
	strbuf_u64(&p->record, 0);
	strbuf_u32(&p->record, PROT_READ | PROT_EXEC);
	strbuf_u32(&p->record, MAP_PRIVATE);
	add_padded(p, path);
	return end_with_id(p, thread->pid, thread->pid, time, err);
}

static int put_comm(struct perf_data *p, uint32_t id, uint64_t time, struct err *err)
{
	const struct profile_thread *thread = profile_thread(p->profile, id);
	bool added;

	if (!map_put(&p->described, id, &added))
		return err_nomem(err);
	if (!added)
		return 0;
	begin(p, PERF_RECORD_COMM, 0);
	strbuf_u32(&p->record, thread->pid);
	strbuf_u32(&p->record, thread->tid);
	add_padded(p, profile_text(p->profile, thread->comm));
	return end_with_id(p, thread->pid, thread->tid, time, err);
}

/* Where the kernel and its modules are, as the recording has it. */
static int put_kernel(struct perf_data *p, struct err *err)
{
	struct data_file *file;
	struct data_record record;
	int rc = data_open(&file, p->options->input, err);

	if (rc)
		return rc;
	while ((rc = data_next(file, &record, err)) > 0) {
		struct record_mmap map;

		data_discard(file, record.position);
		if ((record.header->type != PERF_RECORD_MMAP &&
		     record.header->type != PERF_RECORD_MMAP2) ||
		    (record.header->misc & PERF_RECORD_MISC_CPUMODE_MASK) !=
			    PERF_RECORD_MISC_KERNEL ||
		    !record_decode_mmap(record.header, &map))
			continue;
		begin(p, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);
		strbuf_u32(&p->record, map.pid);
		strbuf_u32(&p->record, map.tid);
		strbuf_u64(&p->record, map.addr);
		strbuf_u64(&p->record, map.len);
		strbuf_u64(&p->record, map.pgoff);
		add_padded(p, map.filename);
		rc = end_with_id(p, map.pid, map.tid, 0, err);
		if (rc)
			break;
	}
	data_close(file);
	return rc;
}

/* Leaf first, with a mark before the kernel's part and before the user's. */
static int make_chain(struct perf_data *p, uint32_t stack, struct err *err)
{
	uint64_t context = 0;

	p->chain.len = 0;
	if (!vec_reserve(&p->chain, CHAIN_MAX + 2))
		return err_nomem(err);
	while (stack && p->chain.len < CHAIN_MAX) {
		const struct profile_stack *s = profile_stack(p->profile, stack);
		uint32_t function = profile_frame(p->profile, s->frame)->function;
		bool kernel = profile_function(p->profile, function)->kind == FRAME_KERNEL;
		uint64_t mark = kernel ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER;

		if (mark != context)
			p->chain.items[p->chain.len++] = context = mark;
		p->chain.items[p->chain.len++] = p->addresses[s->frame];
		stack = s->parent;
	}
	return 0;
}

static int put_sample(struct perf_data *p, const struct sample *sample, struct err *err)
{
	const struct profile_thread *thread = profile_thread(p->profile, sample->thread);
	bool kernel;
	int rc = put_comm(p, sample->thread, sample->time, err);

	if (!rc)
		rc = make_chain(p, sample->stack, err);
	for (size_t i = 0; i < p->chain.len && !rc; i++) {
		uint64_t address = p->chain.items[i];
		uint64_t number = (address - BASE) / STRIDE;

		if (address >= BASE && number <= p->file_list.len)
			rc = put_map(p, thread, number, sample->time, err);
	}
	if (rc)
		return rc;
	kernel = p->chain.len && p->chain.items[0] == (uint64_t)PERF_CONTEXT_KERNEL;
	begin(p, PERF_RECORD_SAMPLE, kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
	strbuf_u64(&p->record, p->event_ids[sample->event]);
	strbuf_u64(&p->record, p->chain.len ? p->chain.items[1] : 0);
	strbuf_u32(&p->record, thread->pid);
	strbuf_u32(&p->record, thread->tid);
	strbuf_u64(&p->record, sample->time);
	strbuf_u32(&p->record, sample->cpu == UINT32_MAX ? 0 : sample->cpu);
	strbuf_u32(&p->record, 0);
	strbuf_u64(&p->record, sample->period);
	strbuf_u64(&p->record, p->chain.len);
	strbuf_add(&p->record, p->chain.items, p->chain.len * sizeof(uint64_t));
	data_writer_time(p->writer, sample->time);
	return end(p, err);
}

static int open_writer(struct perf_data *p, const char *path, struct err *err)
{
	const struct data_writer_options options = {0};
	size_t count = profile_event_count(p->profile), written = 0;
	struct data_event *events = calloc(count + 1, sizeof(*events));
	uint64_t *ids = calloc(count + 1, sizeof(*ids));
	int rc = 0;

	p->event_ids = calloc(count + 1, sizeof(*p->event_ids));
	if (!events || !ids || !p->event_ids)
		rc = err_nomem(err);
	for (uint32_t i = 0; i < count && !rc; i++) {
		struct data_event *event = &events[written];
		struct perf_event_attr *attr = &event->attr;

		if (!export_has_event(p->options, i))
			continue;
		*event = *data_event(p->options->file, i);
		attr->size = PERF_ATTR_SIZE_VER5 + 16; /* what every perf takes */
		attr->sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				    PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
				    PERF_SAMPLE_CALLCHAIN;
		attr->sample_id_all = 1;
		attr->read_format = 0;
		attr->branch_sample_type = attr->sample_regs_user = attr->sample_regs_intr = 0;
		attr->sample_stack_user = attr->sample_max_stack = 0;
		event->name = profile_event(p->profile, i)->name;
		event->leader = (int)written;
		ids[written] = written + 1;
		event->ids = &ids[written];
		event->id_count = 1;
		p->event_ids[i] = (uint32_t)++written;
	}
	if (!rc && !written)
		rc = err_set(err, ERR_NOT_FOUND, "there are no samples to export");
	if (!rc)
		rc = data_writer_open(&p->writer, path, events, written, &options, err);
	free(events);
	free(ids);
	return rc;
}

static int put_records(struct perf_data *p, struct err *err)
{
	const struct data_info *info = p->options->info;
	const struct sample *sample;
	struct samples_walk walk;
	int rc = put_kernel(p, err);

	if (!rc)
		rc = samples_walk_init(&walk, p->options->samples, p->profile, p->options->filter,
				       export_events(p->options), err);
	else
		return rc;
	for (size_t i = 0; i < info->build_id_count && !rc; i++)
		rc = data_writer_build_id(p->writer, info->build_ids[i].pid,
					  info->build_ids[i].misc, info->build_ids[i].path,
					  info->build_ids[i].id, info->build_ids[i].id_len, err);
	while (!rc && (sample = samples_walk_next(&walk)))
		rc = put_sample(p, sample, err);
	samples_walk_fini(&walk);
	return rc;
}

static uint16_t machine_of(const struct export_options *options)
{
	const struct arch *arch = options->info->arch ? arch_by_name(options->info->arch) : NULL;

	arch = arch ? arch : arch_host();
	return arch->elf_machine;
}

/* PATH.so, absolute, since perf looks for it by this name. */
static int name_image(struct perf_data *p, const char *path, struct err *err)
{
	const char *slash = strrchr(path, '/');
	struct strbuf folder = {0};
	char *real;

	if (slash)
		strbuf_add(&folder, path, (size_t)(slash - path) + 1);
	else
		strbuf_str(&folder, ".");
	real = strbuf_failed(&folder) ? NULL : realpath(strbuf_text(&folder), NULL);
	strbuf_fini(&folder);
	if (!real)
		return err_sys(err, errno, "cannot write %s", path);
	strbuf_printf(&p->image_path, "%s/%s.so", strcmp(real, "/") ? real : "",
		      slash ? slash + 1 : path);
	free(real);
	return strbuf_failed(&p->image_path) ? err_nomem(err) : 0;
}

/* Both files under their names, or neither. */
static int write_all(struct perf_data *p, const char *path, struct err *err)
{
	const struct data_info none = {0};
	struct strbuf reached = {0};
	struct draft draft;
	int rc = draft_open(&draft, path, 0600, err), closed;

	if (rc)
		return rc;
	rc = draft_reach(&draft, &reached) ? open_writer(p, reached.buf, err) : err_nomem(err);
	strbuf_fini(&reached);
	if (!rc) {
		rc = put_records(p, err);
		closed = data_writer_close(p->writer, rc ? &none : p->options->info,
					   rc ? NULL : err);
		rc = rc ? rc : closed;
	}
	if (!rc)
		rc = image_write(&p->image, strbuf_text(&p->image_path), machine_of(p->options),
				 err);
	return draft_close(&draft, rc, err);
}

int export_perf(const char *path, const struct export_options *options, struct err *err)
{
	struct perf_data p = {.options = options, .profile = options->profile};
	size_t len = strlen(path);
	struct stat st;
	int rc;

	if (!options->file)
		return err_set(err, ERR_UNSUPPORTED,
			       "a profile of another tool has no events that perf could show");
	if (strcmp(options->input, "-") == 0)
		return err_set(err, ERR_USAGE, "the recording is read twice, so it must be a file");
	if (len > 3 &&
	    (!strcmp(path + len - 3, ".gz") || (len > 4 && !strcmp(path + len - 4, ".zst"))))
		return err_set(err, ERR_USAGE, "perf reads no file that is compressed as a whole");
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(err, ERR_USAGE, "cannot write %s: perf reads plain files only",
			       path);
	rc = name_image(&p, path, err);
	if (!rc)
		rc = give_addresses(&p, err);
	if (!rc)
		rc = write_all(&p, path, err);
	strbuf_fini(&p.record);
	strbuf_fini(&p.image_path);
	vec_fini(&p.image.lines);
	vec_fini(&p.file_list);
	vec_fini(&p.chain);
	map_fini(&p.files);
	map_fini(&p.mapped);
	map_fini(&p.described);
	free(p.addresses);
	free(p.event_ids);
	return rc;
}
