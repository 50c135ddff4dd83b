/*
 * Where functions without symbols begin and end, by the unwinder's tables.
 *
 * .eh_frame_hdr holds a table of (start, description) sorted by start, which strip(1) keeps since
 * exceptions need it; the description (FDE) in .eh_frame says how long the code is. Nothing is
 * built or kept: a look-up is a binary search in the file. Entries are (DWARF and LSB, "Exception
 * Frames") offsets from the start of .eh_frame_hdr; other encodings are not made by any linker.
 */
#include "symbol/elf.h"

#include "base/bytes.h"
#include "symbol/elf_file.h"

#include <dwarf.h>
#include <gelf.h>
#include <string.h>

#define HEADER_SIZE 12
#define TABLE_ENTRY_SIZE 8
/* As much of a description as is read: what matters is at its start. */
#define DESCRIPTION_MAX 256

struct description {
	uint64_t vaddr; /* of the bytes behind the length */
	unsigned char buf[DESCRIPTION_MAX];
	struct bytes bytes;
};

static bool read_view(const struct elf_file *elf, uint64_t vaddr, void *buf, size_t len,
		      struct bytes *bytes)
{
	if (elf_read(elf, vaddr, buf, len) < 0)
		return false;
	*bytes = bytes_of(buf, len);
	bytes->swap = elf->swap;
	return true;
}

static void read_header(struct elf_file *elf)
{
	struct elf_frames *frames = &elf->frames;
	unsigned char buf[HEADER_SIZE];
	uint8_t version, frame_encoding, count_encoding, table_encoding;
	uint64_t size, most;
	struct bytes b;

	frames->tried = true;
	if (!elf_section_in_file(elf, ".eh_frame_hdr", &frames->vaddr, &size) ||
	    size < HEADER_SIZE || !read_view(elf, frames->vaddr, buf, sizeof(buf), &b))
		return;
	version = bytes_u8(&b);
	frame_encoding = bytes_u8(&b);
	count_encoding = bytes_u8(&b);
	table_encoding = bytes_u8(&b);
	if (version != 1 || (frame_encoding & 7) != DW_EH_PE_udata4 ||
	    count_encoding != DW_EH_PE_udata4 ||
	    table_encoding != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
		return;
	bytes_u32(&b);
	frames->count = bytes_u32(&b);
	most = (size - HEADER_SIZE) / TABLE_ENTRY_SIZE;
	if (frames->count > most)
		frames->count = (uint32_t)most;
}

static bool table_get(const struct elf_file *elf, uint32_t i, uint64_t *start, uint64_t *fde)
{
	uint64_t table = elf->frames.vaddr;
	unsigned char buf[TABLE_ENTRY_SIZE];
	struct bytes b;

	if (!read_view(elf, table + HEADER_SIZE + (uint64_t)i * TABLE_ENTRY_SIZE, buf, sizeof(buf),
		       &b))
		return false;
	*start = table + (uint64_t)(int64_t)(int32_t)bytes_u32(&b);
	*fde = table + (uint64_t)(int64_t)(int32_t)bytes_u32(&b);
	return true;
}

static bool read_description(const struct elf_file *elf, uint64_t vaddr, struct description *d)
{
	unsigned char buf[4];
	uint32_t len;

	if (!read_view(elf, vaddr, buf, sizeof(buf), &d->bytes))
		return false;
	len = bytes_u32(&d->bytes);
	d->vaddr = vaddr + sizeof(buf);
	/* The 64-bit form is for sections beyond 4 GB. */
	return len && len != UINT32_MAX &&
	       read_view(elf, d->vaddr, d->buf, len < DESCRIPTION_MAX ? len : DESCRIPTION_MAX,
			 &d->bytes);
}

static void skip_leb128(struct bytes *b)
{
	while (bytes_u8(b) & 0x80)
		;
}

/* A pointer; `vaddr` is its own place. Zero and bad where the encoding is one that we do not
 * know. */
static uint64_t read_pointer(struct bytes *b, uint8_t encoding, uint64_t vaddr, bool wide)
{
	uint64_t value = 0;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
		value = wide ? bytes_u64(b) : bytes_u32(b);
		break;
	case DW_EH_PE_udata2:
		value = bytes_u16(b);
		break;
	case DW_EH_PE_udata4:
		value = bytes_u32(b);
		break;
	case DW_EH_PE_sdata2:
		value = (uint64_t)(int64_t)(int16_t)bytes_u16(b);
		break;
	case DW_EH_PE_sdata4:
		value = (uint64_t)(int64_t)(int32_t)bytes_u32(b);
		break;
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = bytes_u64(b);
		break;
	default:
		b->bad = true;
	}
	if ((encoding & 0xf0) == DW_EH_PE_pcrel)
		value += vaddr;
	else if (encoding & 0xf0)
		b->bad = true;
	return value;
}

/* How the pointers of the descriptions that share this head (CIE) are encoded. */
static bool pointer_encoding(const struct elf_file *elf, uint64_t vaddr, bool wide,
			     uint8_t *encoding)
{
	struct description cie;
	struct bytes *b = &cie.bytes;
	const char *letters;
	uint8_t version;

	*encoding = DW_EH_PE_absptr;
	if (!read_description(elf, vaddr, &cie) || bytes_u32(b) != 0)
		return false;
	version = bytes_u8(b);
	letters = bytes_cstr(b);
	if (b->bad || (version != 1 && version != 3) || (*letters && *letters != 'z'))
		return false;
	skip_leb128(b); /* code alignment, data alignment, return register, length */
	skip_leb128(b);
	if (version == 1)
		bytes_u8(b);
	else
		skip_leb128(b);
	if (!*letters)
		return !b->bad;
	skip_leb128(b);
	for (letters++; *letters && !b->bad; letters++) {
		uint8_t personality;

		switch (*letters) {
		case 'R':
			*encoding = bytes_u8(b);
			return !b->bad;
		case 'P':
			personality = bytes_u8(b) & 0x0f;
			read_pointer(b, personality, 0, wide);
			break;
		case 'L':
			bytes_u8(b);
			break;
		case 'S':
		case 'B': /* aarch64: return addresses are signed with key B */
			break;
		default:
			return false;
		}
	}
	return !b->bad;
}

uint32_t elf_function_count(struct elf_file *elf)
{
	if (!elf->frames.tried)
		read_header(elf);
	return elf->frames.count;
}

bool elf_function_start(struct elf_file *elf, uint32_t index, uint64_t *start)
{
	uint64_t fde;

	return index < elf_function_count(elf) && table_get(elf, index, start, &fde);
}

bool elf_function_range(struct elf_file *elf, uint64_t vaddr, uint64_t *start, uint64_t *size)
{
	bool wide = gelf_getclass(elf->elf) == ELFCLASS64;
	uint32_t lo = 0, hi, head;
	uint64_t first, fde, head_vaddr;
	struct description d;
	uint8_t encoding;

	hi = elf_function_count(elf);
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (!table_get(elf, mid, &first, &fde))
			return false;
		if (first <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || !table_get(elf, lo - 1, &first, &fde) || !read_description(elf, fde, &d))
		return false;
	head = bytes_u32(&d.bytes); /* how far before this word it lies; 0 in a CIE itself */
	head_vaddr = d.vaddr - head;
	if (!head || !pointer_encoding(elf, head_vaddr, wide, &encoding))
		return false;
	if (read_pointer(&d.bytes, encoding, d.vaddr + 4, wide) != first)
		return false;
	*start = first;
	*size = read_pointer(&d.bytes, encoding & 0x0f, 0, wide);
	return !d.bytes.bad && first <= vaddr && vaddr - first < *size &&
	       *size <= UINT64_MAX - first;
}
