#ifndef PYPERF_RING_H
#define PYPERF_RING_H

#include "base/err.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One mmap ring buffer of perf_event_open(2), read by us and written by the kernel.
 *
 * The protocol (perf_event_mmap_page in linux/perf_event.h): load data_head with acquire, read
 * records between data_tail and data_head, store data_tail with release. The event's fd is
 * borrowed; the mapping belongs to the ring.
 */
struct ring {
	struct perf_event_mmap_page *control;
	const unsigned char *data;
	size_t size;   /* bytes of data, a power of two */
	uint64_t head; /* of the batch that is being read */
	uint64_t tail;
	unsigned char *wrapped; /* a record that crosses the end is copied here */
};

/* `pages` is a power of two. ERR_PERMISSION for the mlock limit names perf_event_mlock_kb. */
int ring_open(struct ring *ring, int event_fd, size_t pages, struct err *err);
void ring_close(struct ring *ring);

/*
 * A batch: ring_begin() takes what is there now; each ring_next() gives one record, valid until
 * the next call; ring_end() gives the space back to the kernel. NULL at the end of the batch.
 * A header that cannot be (size 0, beyond the head) ends the batch and sets *corrupt.
 */
void ring_begin(struct ring *ring);
const struct perf_event_header *ring_next(struct ring *ring, int *corrupt);
void ring_end(struct ring *ring);
/* Puts back what ring_next() gave last: the batch ends before it, and the next one begins with it.
 */
void ring_put_back(struct ring *ring, const struct perf_event_header *record);

/* Bytes that wait to be read. */
size_t ring_pending(const struct ring *ring);

#endif
