/*
 * make-samples FILE SAMPLES [STACKS [ZSTD_LEVEL]]: writes a recording as long as wanted, for the
 * report bench. Two CPUs, rounds of 10 ms, 20 Python frames deep, STACKS different Python stacks,
 * leaf addresses spread over a native library.
 */
#include "tests/unit/recording.h"

#include <stdlib.h>

#define DEPTH 20u
#define CODES 200u
#define CODE_ADDRESS 0x7f0000001000u
#define LIBRARY_ADDRESS 0x7f1000000000u

static uint64_t random_state = 88172645463325252u;

/* xorshift64: the same file at each run. */
static uint64_t draw(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

static void write_codes(struct recording *r)
{
	char name[32], file[64];

	for (uint32_t i = 0; i < CODES; i++) {
		snprintf(name, sizeof(name), "function_%u", i);
		snprintf(file, sizeof(file), "/srv/app/module_%u.py", i / 20);
		recording_code(r, 1, CODE_ADDRESS + i * 512, i * 977, name, file, 10 + i % 20 * 50,
			       40);
	}
}

static void make_stack(struct py_raw_frame *frames, uint64_t number)
{
	for (uint32_t i = 0; i < DEPTH; i++) {
		/* Near the root stacks are alike, as in real programs. */
		uint32_t code = (uint32_t)((number >> (DEPTH - i)) * 31 + i * 7) % CODES;

		frames[i] = (struct py_raw_frame){
			.code = CODE_ADDRESS + code * 512,
			.fingerprint = code * 977,
			.instr = (uint32_t)(i ? (number >> (DEPTH - i)) % 40 : number % 40) * 4 |
				 (i + 1 == DEPTH ? PY_FRAME_ENTRY : 0),
		};
	}
}

static void write_sample(struct recording *r, uint64_t stacks)
{
	struct py_raw_frame frames[DEPTH];
	/* Few instructions take most samples, and so do few stacks. */
	uint64_t leaf = draw(draw(draw(1024) + 1) + 1);
	uint64_t stack = draw(draw(stacks) + 1);
	uint64_t chain[3] = {LIBRARY_ADDRESS + leaf * 16, LIBRARY_ADDRESS + 77, 0x1234};
	int event = draw(4) ? EVENT_CYCLES : EVENT_MISSES;

	make_stack(frames, stack * 2654435761u % (1u << DEPTH));
	recording_frames(r, 1, PY_WALK_OK, frames, DEPTH);
	r->time += 300;
	if (draw(10))
		recording_sample(r, event, 1000 + draw(100), chain, 3);
	else
		recording_kernel_sample(r, event, 1000, 0xffffffff81000000u + draw(64) * 256, chain,
					3);
}

int main(int argc, char **argv)
{
	uint64_t samples = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t stacks = argc > 3 ? strtoull(argv[3], NULL, 10) : 2000;
	struct recording r;
	uint64_t start;

	if (!samples || !stacks) {
		fprintf(stderr, "usage: %s FILE SAMPLES [STACKS [ZSTD_LEVEL]]\n", argv[0]);
		return 2;
	}
	recording_open(&r, argv[1], argc > 4 ? atoi(argv[4]) : 0);
	if (r.rc < 0) {
		fprintf(stderr, "%s: cannot write\n", argv[1]);
		return 1;
	}
	recording_comm(&r, "python3", true);
	recording_mmap(&r, LIBRARY_ADDRESS, 1 << 20, 0, "/srv/lib/libbench.so");
	write_codes(&r);
	start = r.time;
	for (uint64_t done = 0; done < samples;) {
		uint64_t round_start = start;

		for (r.cpu = 0; r.cpu < 2; r.cpu++) {
			r.pid = 100;
			r.tid = 100 + r.cpu;
			r.time = round_start + r.cpu * 50;
			for (int i = 0; i < 100 && done < samples; i++, done++) {
				r.time += 100000;
				write_sample(&r, stacks);
			}
			start = r.time > start ? r.time : start;
		}
		recording_round(&r);
	}
	return recording_close(&r, NULL) < 0;
}
