#include "output/perf_image.h"

#include "arch/arch.h"
#include "base/intern.h"
#include "base/sink.h"
#include "base/strbuf.h"

#include <dwarf.h>
#include <elf.h>
#include <string.h>

/*
 * The file is laid out by hand, since there is so little in it: code from 4096 on, at the addresses
 * of its offsets; a symbol for each function; DWARF 4 with one unit, whose line program has a row
 * for each line.
 */
#define TEXT 4096u

enum section {
	SECTION_NONE,
	SECTION_TEXT,
	SECTION_SYMTAB,
	SECTION_STRTAB,
	SECTION_LINE,
	SECTION_INFO,
	SECTION_ABBREV,
	SECTION_SHSTRTAB,
	SECTIONS,
};
static const struct {
	const char *name;
	uint32_t type, flags, align;
} sections[] = {
	[SECTION_NONE] = {"", SHT_NULL, 0, 0},
	[SECTION_TEXT] = {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 16},
	[SECTION_SYMTAB] = {".symtab", SHT_SYMTAB, 0, 8},
	[SECTION_STRTAB] = {".strtab", SHT_STRTAB, 0, 1},
	[SECTION_LINE] = {".debug_line", SHT_PROGBITS, 0, 1},
	[SECTION_INFO] = {".debug_info", SHT_PROGBITS, 0, 1},
	[SECTION_ABBREV] = {".debug_abbrev", SHT_PROGBITS, 0, 1},
	[SECTION_SHSTRTAB] = {".shstrtab", SHT_STRTAB, 0, 1},
};

void image_lay_out(struct image *image)
{
	for (size_t i = 0; i < image->lines.len; i++)
		image->lines.items[i].address = TEXT + i * IMAGE_SLOT;
	image->size = TEXT + image->lines.len * IMAGE_SLOT;
}

static void add_uleb(struct strbuf *out, uint64_t value)
{
	do {
		strbuf_u8(out, (uint8_t)((value & 0x7f) | (value > 0x7f) << 7));
		value >>= 7;
	} while (value);
}

static void add_sleb(struct strbuf *out, int64_t value)
{
	for (bool more = true; more; value >>= 7) {
		more = !((value >> 6 == 0) || (value >> 6 == -1));
		strbuf_u8(out, (uint8_t)((value & 0x7f) | more << 7));
	}
}

static void add_text(struct strbuf *out, const char *text)
{
	strbuf_add(out, text, strlen(text) + 1);
}

/* A length that is known only when all behind it is there. */
static void set_u32(struct strbuf *out, size_t at)
{
	uint32_t len = (uint32_t)(out->len - at - sizeof(len));

	if (!strbuf_failed(out))
		memcpy(out->buf + at, &len, sizeof(len));
}

static bool has_file(const struct image_line *line)
{
	return line->file && line->file[0] && line->line;
}

/* DWARF 4, 6.2: a header with the files, then the program. Files are numbered from 1, as interned
 * strings are. */
static int make_lines(struct strbuf *out, const struct image *image, struct err *err)
{
	static const uint8_t operands[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	struct intern files;
	size_t header;
	int64_t line = 1;
	uint32_t file = 1;
	bool failed = false;

	intern_init(&files);
	for (size_t i = 0; i < image->lines.len && !failed; i++)
		if (has_file(&image->lines.items[i]))
			failed = intern_str(&files, image->lines.items[i].file) == INTERN_NONE;
	strbuf_u32(out, 0);
	strbuf_u16(out, 4);
	header = out->len;
	strbuf_u32(out, 0);
	strbuf_add(out, (const uint8_t[]){1, 1, 1, (uint8_t)-5, 14, sizeof(operands) + 1}, 6);
	strbuf_add(out, operands, sizeof(operands));
	strbuf_u8(out, 0); /* no folders */
	for (uint32_t id = 1; id <= files.count; id++) {
		add_text(out, intern_text(&files, id, NULL));
		strbuf_add(out, "\0\0\0", 3); /* folder, time, size */
	}
	strbuf_u8(out, 0);
	set_u32(out, header);
	strbuf_add(out, (const uint8_t[]){0, 9, DW_LNE_set_address}, 3);
	strbuf_u64(out, TEXT);
	for (size_t i = 0; i < image->lines.len && !failed; i++) {
		const struct image_line *l = &image->lines.items[i];
		uint32_t id = has_file(l) ? intern_str(&files, l->file) : file;
		int64_t want = has_file(l) ? l->line : 0;

		if (id != file && id) {
			strbuf_u8(out, DW_LNS_set_file);
			add_uleb(out, id);
			file = id;
		}
		strbuf_u8(out, DW_LNS_advance_line);
		add_sleb(out, want - line);
		line = want;
		strbuf_u8(out, DW_LNS_copy);
		strbuf_u8(out, DW_LNS_advance_pc);
		add_uleb(out, IMAGE_SLOT);
	}
	strbuf_add(out, (const uint8_t[]){0, 1, DW_LNE_end_sequence}, 3);
	set_u32(out, 0);
	intern_fini(&files);
	return failed ? err_nomem(err) : 0;
}

static const uint8_t abbreviations[] = {
	1,
	DW_TAG_compile_unit,
	DW_CHILDREN_no,
	DW_AT_producer,
	DW_FORM_string,
	DW_AT_language,
	DW_FORM_data2,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_comp_dir,
	DW_FORM_string,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data8,
	DW_AT_stmt_list,
	DW_FORM_sec_offset,
	0,
	0,
	0,
};

static void make_info(struct strbuf *out, const struct image *image)
{
	strbuf_u32(out, 0);
	strbuf_u16(out, 4);
	strbuf_u32(out, 0); /* its abbreviations */
	strbuf_u8(out, 8);  /* bytes of an address */
	strbuf_u8(out, 1);
	add_text(out, "pyperf " PYPERF_VERSION);
	strbuf_u16(out, DW_LANG_Python);
	add_text(out, "python");
	add_text(out, "/");
	strbuf_u64(out, TEXT);
	strbuf_u64(out, image->size - TEXT);
	strbuf_u32(out, 0); /* its lines */
	set_u32(out, 0);
}

static void make_symbols(struct strbuf *symbols, struct strbuf *names, const struct image *image)
{
	Elf64_Sym symbol = {0};
	size_t next;

	strbuf_u8(names, 0);
	strbuf_add(symbols, &symbol, sizeof(symbol));
	for (size_t i = 0; i < image->lines.len; i = next) {
		const struct image_line *line = &image->lines.items[i];

		for (next = i + 1; next < image->lines.len; next++)
			if (image->lines.items[next].function != line->function)
				break;
		symbol = (Elf64_Sym){
			.st_name = (uint32_t)names->len,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = SECTION_TEXT,
			.st_value = line->address,
			.st_size = (next - i) * IMAGE_SLOT,
		};
		add_text(names, line->function);
		strbuf_add(symbols, &symbol, sizeof(symbol));
	}
}

static void make_text(struct strbuf *out, const struct image *image, const struct arch *arch)
{
	uint8_t slot[IMAGE_SLOT];

	for (size_t i = 0; i < sizeof(slot); i++)
		slot[i] = arch->nop[i % arch->nop_len];
	for (size_t i = 0; i < image->lines.len; i++)
		strbuf_add(out, slot, sizeof(slot));
}

static void put_headers(FILE *out, const struct image *image, uint16_t machine, uint64_t table)
{
	const Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_shoff = table,
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = SECTION_SHSTRTAB,
	};
	const Elf64_Phdr load = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_filesz = image->size,
		.p_memsz = image->size,
		.p_align = TEXT,
	};
	static const char padding[TEXT];

	fwrite(&header, sizeof(header), 1, out);
	fwrite(&load, sizeof(load), 1, out);
	fwrite(padding, TEXT - sizeof(header) - sizeof(load), 1, out);
}

static void put_file(FILE *out, const struct image *image, struct strbuf *content, uint16_t machine)
{
	Elf64_Shdr table[SECTIONS] = {0};
	struct strbuf *names = &content[SECTION_SHSTRTAB];
	uint64_t at = TEXT;

	for (int i = 0; i < SECTIONS; i++) {
		table[i].sh_name = (uint32_t)names->len;
		add_text(names, sections[i].name);
	}
	for (int i = SECTION_TEXT; i < SECTIONS; i++) {
		table[i].sh_type = sections[i].type;
		table[i].sh_flags = sections[i].flags;
		table[i].sh_addralign = sections[i].align;
		table[i].sh_addr = i == SECTION_TEXT ? TEXT : 0;
		table[i].sh_offset = at;
		table[i].sh_size = content[i].len;
		strbuf_pad(&content[i], 16);
		at += content[i].len;
	}
	table[SECTION_SYMTAB].sh_link = SECTION_STRTAB;
	table[SECTION_SYMTAB].sh_info = 1;
	table[SECTION_SYMTAB].sh_entsize = sizeof(Elf64_Sym);
	put_headers(out, image, machine, at);
	for (int i = SECTION_TEXT; i < SECTIONS; i++)
		fwrite(content[i].buf, 1, content[i].len, out);
	fwrite(table, sizeof(table), 1, out);
}

int image_write(const struct image *image, const char *path, uint16_t elf_machine, struct err *err)
{
	const struct arch *arch = arch_by_machine(elf_machine);
	struct strbuf content[SECTIONS] = {0};
	struct sink *sink;
	bool failed = false;
	int rc = make_lines(&content[SECTION_LINE], image, err);

	make_text(&content[SECTION_TEXT], image, arch ? arch : arch_host());
	make_symbols(&content[SECTION_SYMTAB], &content[SECTION_STRTAB], image);
	make_info(&content[SECTION_INFO], image);
	strbuf_add(&content[SECTION_ABBREV], abbreviations, sizeof(abbreviations));
	if (!rc)
		rc = sink_open(&sink, path, err);
	if (!rc) {
		put_file(sink_file(sink), image, content, elf_machine);
		for (int i = 0; i < SECTIONS; i++)
			failed |= strbuf_failed(&content[i]);
		rc = sink_close(sink, failed ? err_nomem(err) : 0, err);
	}
	for (int i = 0; i < SECTIONS; i++)
		strbuf_fini(&content[i]);
	return rc;
}
