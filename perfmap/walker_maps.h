#ifndef PYPERF_WALKER_MAPS_H
#define PYPERF_WALKER_MAPS_H

#include <linux/types.h>

/* What walker.bpf.c and engine.c share beside layouts and frames. */

#define WALKER_PROCESSES 16384
#define WALKER_SEEN 16384     /* code objects that are remembered as sent */
#define WALKER_SEEN_CACHE 512 /* of them at hand on each CPU; a power of two */
#define WALKER_NEW_CODES 8    /* code objects that one sample reads itself */
#define WALKER_REQUEST_BYTES (256 * 1024)
#define WALKER_THREADS 16384 /* whose stacks are remembered */

struct walker_code_key {
	__u64 code;
	__u32 fingerprint;
	__u32 lineage;
};

/* Why a request is sent. */
enum walker_request_kind {
	WALKER_REQUEST_CODE = 0,
	WALKER_REQUEST_FORGET = 1, /* the table of seen code objects is full: empty it */
};

struct walker_request {
	__u32 pid, lineage;
	__u64 code;
	__u32 fingerprint;
	__u32 kind;
};

/* Per CPU, written by that CPU only. */
struct walker_stats {
	__u64 walks, frames, faults, output_lost, code_sent, requests_lost;
};

#endif
