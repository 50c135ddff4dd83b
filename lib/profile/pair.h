#ifndef PYPERF_PAIR_H
#define PYPERF_PAIR_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Which Python frames belong to which sample.
 *
 * The walker runs in the overflow of a sampled event, so its record lies directly before that
 * sample in the ring of the CPU. Records are offered here in the order of the file, which is the
 * order of each ring, and not by time: kernels since 6.3 stamp the sample before they run the
 * walker (perf_prepare_sample() in bpf_overflow_handler()), so the frames can be the later ones.
 *
 * Where a sample was lost, its frames must not go to the next one: any other sample of the CPU, any
 * loss and newer frames end the wait. Pure: payloads are borrowed and only handed through.
 */
/* Times of frames and sample differ by less. Both are written in one interrupt, but in a virtual
 * machine the host may take the CPU away in between, for a slice of its scheduler's or more. */
#define PAIR_WINDOW_NS 100000000u

struct pair_frames {
	const void *payload; /* NULL: no frames */
	uint32_t len;
	uint32_t tid, cpu;
	uint64_t time;	   /* 0: not known */
	uint64_t position; /* of the record in the file */
};

struct pairing {
	VEC_OF(struct pair_frames) /* one per CPU, by number modulo PAIR_CPUS_MAX */
	uint64_t unpaired;	   /* frames that found no sample */
};
#define PAIR_CPUS_MAX 8192u

void pairing_fini(struct pairing *pairing);

/* False when memory ran out. */
bool pairing_frames(struct pairing *pairing, const struct pair_frames *frames);
/* The sample's frames; without payload where it has none. */
struct pair_frames pairing_sample(struct pairing *pairing, uint32_t cpu, uint32_t tid,
				  uint64_t time);
/* Records of this CPU were lost; UINT32_MAX: of some CPU. */
void pairing_lost(struct pairing *pairing, uint32_t cpu);
/* Nothing older than `time` can come any more: gives up what waits in vain, and returns the least
 * position that still waits, UINT64_MAX for none. */
uint64_t pairing_expire(struct pairing *pairing, uint64_t time);

#endif
