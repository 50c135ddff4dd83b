/*
 * The part of a function that the compiler moved away ("f.cold"), where no symbol says so.
 *
 * It is a function of its own to the unwinder, but control goes to and fro between the inside of
 * one and the inside of the other by plain jumps, which no two functions do: they call or jump to
 * each other's start. Jumps are searched for at every byte, without decoding what lies between; a
 * wrong one would have to hit the inside of the other part by chance, so several are asked for in
 * both directions.
 */
#include "symbol/elf.h"

#include "symbol/elf_file.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define CODE_MAX (1u << 20) /* bytes of one function */
#define CANDIDATES_MAX 16
#define JUMPS_MIN 4 /* in each direction */

struct part {
	uint64_t start, size;
	unsigned int jumps;
};

/* Is there a jump at the start of the code, and how far from there does it go? */
typedef bool jump_fn(const unsigned char *code, size_t len, int64_t *distance);

/* jmp rel32, jcc rel32 */
static bool jump_x86_64(const unsigned char *code, size_t len, int64_t *distance)
{
	size_t opcode = code[0] == 0xe9						 ? 1
			: code[0] == 0x0f && len > 1 && (code[1] & 0xf0) == 0x80 ? 2
										 : 0;
	int32_t relative;

	if (!opcode || len < opcode + sizeof(relative))
		return false;
	memcpy(&relative, code + opcode, sizeof(relative));
	*distance = (int64_t)(opcode + sizeof(relative)) + relative;
	return true;
}

/* b; b.cond, cbz, cbnz */
static bool jump_aarch64(const unsigned char *code, size_t len, int64_t *distance)
{
	uint32_t word;

	if (len < sizeof(word))
		return false;
	memcpy(&word, code, sizeof(word));
	if (word >> 26 == 5)
		*distance = (int64_t)((uint64_t)word << 38) >> 38 << 2;
	else if ((word & 0xff000010) == 0x54000000 || (word & 0x7e000000) == 0x34000000)
		*distance = (int64_t)((uint64_t)(word >> 5) << 45) >> 45 << 2;
	else
		return false;
	return true;
}

static const struct machine {
	uint16_t machine;
	unsigned int step;
	jump_fn *jump;
} machines[] = {
	{EM_X86_64, 1, jump_x86_64},
	{EM_AARCH64, 4, jump_aarch64},
};

static bool inside(const struct part *part, uint64_t vaddr)
{
	return vaddr > part->start && vaddr - part->start < part->size;
}

/* Counts a jump for the function that it goes into. */
static void add_target(struct elf_file *elf, struct part *parts, size_t *count, uint64_t target)
{
	struct part part = {.jumps = 1};

	for (size_t i = 0; i < *count; i++)
		if (inside(&parts[i], target)) {
			parts[i].jumps++;
			return;
		}
	if (*count < CANDIDATES_MAX && elf_function_range(elf, target, &part.start, &part.size) &&
	    inside(&part, target))
		parts[(*count)++] = part;
}

static unsigned char *read_code(const struct elf_file *elf, const struct part *part)
{
	unsigned char *code = part->size && part->size <= CODE_MAX ? malloc(part->size) : NULL;

	if (code && elf_read(elf, part->start, code, part->size) < 0) {
		free(code);
		code = NULL;
	}
	return code;
}

/* Where the function jumps to outside of itself, the most frequent place; no jumps: nowhere. */
static struct part find_target(struct elf_file *elf, const struct machine *machine,
			       const struct part *from)
{
	struct part parts[CANDIDATES_MAX] = {0}, most = {0};
	unsigned char *code = read_code(elf, from);
	size_t count = 0;
	int64_t distance;

	for (size_t i = 0; code && i < from->size; i += machine->step) {
		if (!machine->jump(code + i, from->size - i, &distance))
			continue;
		if (from->start + i + (uint64_t)distance - from->start >= from->size)
			add_target(elf, parts, &count, from->start + i + (uint64_t)distance);
	}
	for (size_t i = 0; i < count; i++)
		if (parts[i].jumps > most.jumps)
			most = parts[i];
	free(code);
	return most;
}

bool elf_cold_part(struct elf_file *elf, uint64_t vaddr, uint64_t *start, uint64_t *size)
{
	const struct machine *machine = NULL;
	struct part hot = {0}, cold, back;

	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].machine == elf->machine && !elf->swap)
			machine = &machines[i];
	if (!machine || !elf_function_range(elf, vaddr, &hot.start, &hot.size))
		return false;
	cold = find_target(elf, machine, &hot);
	if (cold.jumps < JUMPS_MIN)
		return false;
	back = find_target(elf, machine, &cold);
	*start = cold.start;
	*size = cold.size;
	return back.start == hot.start && back.jumps >= JUMPS_MIN;
}
