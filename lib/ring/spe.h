#ifndef PYPERF_SPE_H
#define PYPERF_SPE_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Decoding of what Arm's Statistical Profiling Extension writes into its buffer: one record for
 * each sampled operation, made of packets (Arm Architecture Reference Manual, "Statistical
 * Profiling Extension sample record protocol").
 *
 * Pure, and bounded by the length of its input: each packet takes a byte at least, and nothing is
 * allocated. The bytes are little-endian whatever the byte order of the machine.
 */
enum spe_operation {
	SPE_OTHER, /* neither of the following, branches among them */
	SPE_LOAD,
	SPE_STORE,
};

/* Bits of the events packet. */
enum spe_event {
	SPE_L1D_ACCESS = 1 << 2,
	SPE_L1D_REFILL = 1 << 3,
	SPE_TLB_ACCESS = 1 << 4,
	SPE_TLB_WALK = 1 << 5,
	SPE_LLC_ACCESS = 1 << 8,
	SPE_LLC_MISS = 1 << 9,
	SPE_REMOTE_ACCESS = 1 << 10,
};

/* What a record does not tell is 0. */
struct spe_record {
	uint64_t pc;   /* address of the instruction */
	uint64_t addr; /* that it loaded from or stored to */
	uint64_t time; /* of the system counter */
	uint64_t events;
	uint32_t latency; /* cycles from its issue to its end */
	uint32_t context; /* CONTEXTIDR: Linux writes the thread's id there */
	uint16_t source;  /* of the data; each model of CPU has numbers of its own */
	enum spe_operation operation;
	bool has_pc, has_context;
};

/* Of one buffer, whose pieces come one after another: a record may begin in one and end in the
 * next. All zero is ready. */
struct spe_decoder {
	struct spe_record record; /* as far as its packets have come */
	uint64_t offset;	  /* in the buffer, of the next byte */
	uint64_t skip;		  /* bytes up to the boundary that a packet asked for */
	uint64_t broken;	  /* records that are cut or have an unknown packet, so far */
	bool open;		  /* the record has a packet */
	bool lost;		  /* waits for the beginning of a record */
};

/* A piece of the buffer begins, at this offset. */
void spe_begin(struct spe_decoder *decoder, uint64_t offset);
/* Takes packets up to the end of a record. False: more bytes are needed; what is left in `in` is
 * the beginning of a packet. */
bool spe_next(struct spe_decoder *decoder, struct bytes *in, struct spe_record *record);
/* The piece is over, `left` bytes before its end: of a packet that is cut. */
void spe_end(struct spe_decoder *decoder, size_t left);
/* The buffer is over: a record that is still open has no end. */
void spe_finish(struct spe_decoder *decoder);

/* Bytes that spe_next() needs to be sure of a packet: the longest one. */
#define SPE_PACKET_MAX 10

/* PERF_SAMPLE_DATA_SRC of a record. MIDR tells the model of the CPU, 0 if not known: its numbers of
 * sources are used where they are known, else the events. */
uint64_t spe_data_source(const struct spe_record *record, uint64_t midr);

#endif
