#include "data/data.h"
#include "ring/order.h"
#include "ring/record.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Any bytes as a recording: as a mapped file and, where they are in pipe mode, as a stream; every
 * record decoded by its attr, put into order and touched again when it is delivered. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static void touch(const void *bytes, uint64_t len)
{
	const uint8_t *at = bytes;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < len; i++)
		sum += at[i];
	sink += sum;
}

static int delivered(const struct perf_event_header *record, uint64_t time, uint64_t position,
		     void *ctx, struct err *err)
{
	touch(record, record->size);
	return 0;
}

static uint64_t decode(const struct data_file *file, const struct perf_event_header *header)
{
	const struct data_event *event = data_event(file, 0);
	struct record_sample sample;
	struct record_mmap mmap;
	struct record_comm comm;
	struct record_task task;
	struct record_id id;
	uint64_t word;

	if (!event)
		return 0;
	if (record_identifier(header, event->attr.sample_type, &word)) {
		int index = data_event_by_id(file, word);

		if (index >= 0)
			event = data_event(file, (size_t)index);
	}
	if (header->type == PERF_RECORD_SAMPLE) {
		if (!record_decode_sample(header, &event->attr, &sample))
			return 0;
		touch(sample.callchain, sample.callchain_len * 8);
		touch(sample.raw, sample.raw_len);
		touch(sample.stack_user, sample.stack_user_size);
		touch(sample.read.at, bytes_left(&sample.read));
		if (sample.regs_user)
			touch(sample.regs_user, 8u * (unsigned int)__builtin_popcountll(
							     event->attr.sample_regs_user));
		return sample.id.time;
	}
	sink += record_lost(header) + strlen(record_type_name(header->type));
	if (record_decode_mmap(header, &mmap)) {
		touch(mmap.filename, strlen(mmap.filename));
		touch(mmap.build_id, mmap.build_id_len);
	}
	if (record_decode_comm(header, &comm))
		touch(comm.comm, strlen(comm.comm));
	record_decode_task(header, &task);
	return record_decode_id(header, &event->attr, &id) ? id.time : 0;
}

static void touch_facts(const struct data_file *file)
{
	const struct data_info *info = data_info(file);

	for (size_t i = 0; i < info->cmdline_len; i++)
		touch(info->cmdline[i], strlen(info->cmdline[i]));
	for (size_t i = 0; i < info->build_id_count; i++) {
		touch(info->build_ids[i].path, strlen(info->build_ids[i].path));
		touch(info->build_ids[i].id, info->build_ids[i].id_len);
	}
	for (unsigned int i = DATA_SECTION_META; i <= DATA_SECTION_JITDUMP; i++) {
		struct bytes section = data_section(file, (enum data_section)i);

		touch(section.at, bytes_left(&section));
	}
	for (size_t i = 0; i < data_event_count(file); i++)
		touch(data_event(file, i)->name, strlen(data_event(file, i)->name));
}

/* Half of what is shown at a time, and not all of it. */
static void take_trace(struct data_file *file)
{
	for (int i = 0; i < 64; i++) {
		struct bytes shown;
		struct err err;

		if (data_payload(file, 4096, &shown, &err) < 0)
			break;
		touch(shown.at, bytes_left(&shown));
		data_payload_take(file, bytes_left(&shown) / 2);
	}
}

static void read_all(const char *path)
{
	struct order *order = order_new(delivered, NULL);
	struct data_record record;
	struct data_file *file;
	uint64_t bytes = 0;
	struct err err;

	if (order && data_open(&file, path, &err) == 0) {
		/* A few dozen bytes may expand to megabytes of tiny records: enough is enough. */
		while (bytes < 4u << 20 && data_next(file, &record, &err) > 0) {
			uint64_t time = decode(file, record.header);

			bytes += record.header->size;
			if (record.header->type == 71)
				take_trace(file);
			if (order_add(order, record.header, time, record.position, &err) < 0)
				break;
			if (record.header->type == 68)
				order_round(order, &err);
			data_discard(file, order_low_water(order));
		}
		order_flush(order, &err);
		touch_facts(file);
		data_close(file);
	}
	order_free(order);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	int pipes[2], fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0)
		return 0;
	if (write(fd, data, size) == (ssize_t)size) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		read_all(path);
	}
	close(fd);
	/* What fits into a pipe needs no second thread. */
	if (size > 16 && size <= 65536 && data[8] == 16 && pipe(pipes) == 0) {
		if (write(pipes[1], data, size) == (ssize_t)size) {
			close(pipes[1]);
			snprintf(path, sizeof(path), "/proc/self/fd/%d", pipes[0]);
			read_all(path);
		} else {
			close(pipes[1]);
		}
		close(pipes[0]);
	}
	return 0;
}
