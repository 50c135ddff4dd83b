#include "ring/spe.h"

#include <stddef.h>

/*
 * Packets. The first byte tells the kind; in most its bits 4 and 5 tell the size of what follows.
 * An extended header has a byte in front, with more bits of the index.
 */
enum packet_kind {
	PACKET_UNKNOWN,
	PACKET_PAD,
	PACKET_END,
	PACKET_TIMESTAMP, /* ends a record, too */
	PACKET_ADDRESS,
	PACKET_COUNTER,
	PACKET_CONTEXT,
	PACKET_OPERATION,
	PACKET_EVENTS,
	PACKET_SOURCE,
	PACKET_ALIGNMENT,
};

struct packet {
	enum packet_kind kind;
	unsigned int index; /* which address, counter or class of operations */
	uint64_t payload;
};

struct header {
	uint8_t mask, value, index; /* `index`: the bits that tell it */
	enum packet_kind kind;
};

static const struct header headers[] = {
	{0xff, 0x00, 0, PACKET_PAD},	 {0xf8, 0xb0, 7, PACKET_ADDRESS},
	{0xf8, 0x98, 7, PACKET_COUNTER}, {0xcf, 0x42, 0, PACKET_EVENTS},
	{0xcf, 0x43, 0, PACKET_SOURCE},	 {0xfc, 0x48, 3, PACKET_OPERATION},
	{0xfc, 0x64, 3, PACKET_CONTEXT}, {0xff, 0x71, 0, PACKET_TIMESTAMP},
	{0xff, 0x01, 0, PACKET_END},
};

/* What can follow the first byte of an extended header. */
static const struct header extended[] = {
	{0xf8, 0xb0, 7, PACKET_ADDRESS},
	{0xf8, 0x98, 7, PACKET_COUNTER},
	{0xf0, 0x00, 15, PACKET_ALIGNMENT},
};

static const struct header *find_header(const struct header *rows, size_t count, uint8_t byte)
{
	for (size_t i = 0; i < count; i++)
		if ((byte & rows[i].mask) == rows[i].value)
			return &rows[i];
	return NULL;
}

static bool has_payload(enum packet_kind kind)
{
	return kind != PACKET_PAD && kind != PACKET_END && kind != PACKET_ALIGNMENT;
}

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* The packet that `in` begins with, and its size; 0 when it goes on beyond the end. */
static size_t read_packet(const struct bytes *in, struct packet *packet)
{
	size_t left = bytes_left(in), head = 1, size = 0;
	const struct header *header;
	unsigned int high = 0;

	*packet = (struct packet){PACKET_UNKNOWN, 0, 0};
	if (!left)
		return 0;
	if ((in->at[0] & 0xfc) == 0x20) {
		if (left < 2)
			return 0;
		high = in->at[0] & 3u;
		head = 2;
		header = find_header(extended, COUNT(extended), in->at[1]);
	} else {
		header = find_header(headers, COUNT(headers), in->at[0]);
	}
	if (!header)
		return 1;
	if (has_payload(header->kind))
		size = (size_t)1 << (in->at[head - 1] >> 4 & 3);
	if (left < head + size)
		return 0;
	packet->kind = header->kind;
	packet->index = high << 3 | (in->at[head - 1] & header->index);
	for (size_t i = 0; i < size; i++)
		packet->payload |= (uint64_t)in->at[head + i] << 8 * i;
	return head + size;
}

enum { ADDRESS_PC = 0, ADDRESS_DATA = 2 };
enum { COUNTER_TOTAL = 0 };
enum { CLASS_OTHER, CLASS_LOAD_STORE, CLASS_BRANCH, CLASS_COUNT };

/* The top byte of an instruction's address is its exception level: those of the kernel, EL1 or with
 * VHE EL2, have only ones there. */
static uint64_t instruction_address(uint64_t payload)
{
	unsigned int level = payload >> 61 & 3;
	bool nonsecure = payload >> 63;
	uint64_t addr = payload & ~(0xffull << 56);

	return nonsecure && (level == 1 || level == 2) ? addr | 0xffull << 56 : addr;
}

/* That of data is its tag, and the one below tells the half. */
static uint64_t data_address(uint64_t payload)
{
	uint64_t addr = payload & ~(0xffull << 56);

	return (addr >> 52 & 0xf) == 0xf ? addr | 0xffull << 56 : addr;
}

static void forget(struct spe_decoder *decoder)
{
	decoder->record = (struct spe_record){0};
	decoder->open = false;
}

/* The record at hand is worth nothing; one is counted, however much is wrong with it. */
static void lose(struct spe_decoder *decoder)
{
	decoder->broken += !decoder->lost;
	decoder->lost = true;
	forget(decoder);
}

static bool is_instruction(const struct packet *packet)
{
	return packet->kind == PACKET_ADDRESS && packet->index == ADDRESS_PC;
}

static void take_address(struct spe_decoder *decoder, const struct packet *packet)
{
	/* A second instruction: the end of the first record is missing. */
	if (is_instruction(packet) && decoder->record.has_pc)
		lose(decoder);
	if (is_instruction(packet)) {
		decoder->lost = false;
		decoder->open = true;
		decoder->record.pc = instruction_address(packet->payload);
		decoder->record.has_pc = true;
	} else if (packet->index == ADDRESS_DATA) {
		decoder->record.addr = data_address(packet->payload);
	}
}

static void take_fact(struct spe_decoder *decoder, const struct packet *packet)
{
	struct spe_record *record = &decoder->record;

	switch (packet->kind) {
	case PACKET_ADDRESS:
		take_address(decoder, packet);
		break;
	case PACKET_COUNTER:
		if (packet->index == COUNTER_TOTAL)
			record->latency = (uint32_t)packet->payload;
		break;
	case PACKET_CONTEXT:
		record->context = (uint32_t)packet->payload;
		record->has_context = true;
		break;
	case PACKET_OPERATION:
		if (packet->index >= CLASS_COUNT)
			lose(decoder);
		else if (packet->index == CLASS_LOAD_STORE)
			record->operation = packet->payload & 1 ? SPE_STORE : SPE_LOAD;
		break;
	case PACKET_EVENTS:
		record->events = packet->payload;
		break;
	case PACKET_SOURCE:
		record->source = (uint16_t)packet->payload;
		break;
	default:
		lose(decoder);
		break;
	}
}

/* Whether that was a sound record. */
static bool end_record(struct spe_decoder *decoder, const struct packet *packet,
		       struct spe_record *record)
{
	bool sound = decoder->record.has_pc;

	if (packet->kind == PACKET_TIMESTAMP)
		decoder->record.time = packet->payload;
	*record = decoder->record;
	if (!sound)
		lose(decoder);
	decoder->lost = false;
	forget(decoder);
	return sound;
}

/* The header of an alignment packet is padding itself: the boundary is the next one behind it. */
static void align(struct spe_decoder *decoder, unsigned int exponent, size_t header)
{
	uint64_t size = 2ull << exponent, end = decoder->offset + header;

	decoder->skip = -end & (size - 1);
}

void spe_begin(struct spe_decoder *decoder, uint64_t offset)
{
	decoder->offset = offset;
	decoder->skip = 0;
}

bool spe_next(struct spe_decoder *decoder, struct bytes *in, struct spe_record *record)
{
	struct packet packet;
	size_t size;

	for (;;) {
		size = decoder->skip < bytes_left(in) ? (size_t)decoder->skip : bytes_left(in);
		decoder->skip -= size;
		decoder->offset += size;
		bytes_take(in, size);
		size = read_packet(in, &packet);
		if (!size)
			return false;
		if (packet.kind == PACKET_ALIGNMENT)
			align(decoder, packet.index & 15, size);
		bytes_take(in, size);
		decoder->offset += size;
		switch (packet.kind) {
		case PACKET_PAD:
		case PACKET_ALIGNMENT:
			break;
		case PACKET_END:
		case PACKET_TIMESTAMP:
			if (end_record(decoder, &packet, record))
				return true;
			break;
		default:
			/* Records begin with their instruction. */
			if (decoder->lost && !is_instruction(&packet))
				break;
			decoder->open = true;
			take_fact(decoder, &packet);
			break;
		}
	}
}

void spe_end(struct spe_decoder *decoder, size_t left)
{
	if (left)
		lose(decoder);
}

void spe_finish(struct spe_decoder *decoder)
{
	if (decoder->open)
		lose(decoder);
}
