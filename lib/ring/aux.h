#ifndef PYPERF_AUX_H
#define PYPERF_AUX_H

#include "base/bytes.h"
#include "ring/ring.h"

/*
 * The area that a tracing PMU (Arm's SPE) writes into itself, beside the ring that its event's
 * records go to (perf_event_mmap_page in linux/perf_event.h, "aux_head"). What lies in it has no
 * records: it is handed on as it is.
 */
struct aux_area {
	struct perf_event_mmap_page *control; /* the ring's */
	const unsigned char *data;	      /* NULL: there is none */
	size_t size;			      /* bytes, a power of two */
	uint64_t head, tail;		      /* of the batch that is being read */
};

/* `event_fd` is one that traces and is redirected into the ring. `pages` is a power of two; fewer
 * are taken where the limit for locked memory forbids them. */
int aux_open(struct aux_area *area, int event_fd, const struct ring *ring, size_t pages,
	     struct err *err);
void aux_close(struct aux_area *area);

/* What is there now, in two parts where it crosses the end; false where there is nothing. It begins
 * at area->tail, and stays until aux_end() gives the space back. */
bool aux_begin(struct aux_area *area, struct bytes parts[2]);
void aux_end(struct aux_area *area);

#endif
