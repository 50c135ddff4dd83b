#include "symbol/elf.h"

#include "base/io.h"
#include "symbol/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define VDSO_BYTES_MAX (1u << 20)
#define READ_ONCE_MAX (32u << 20)

/*
 * The file is mapped whole and handed to libelf as memory, so that a file and an image of one take
 * the same way, pages that are not asked for are never read, and there is one bound, `len`, for
 * what we read ourselves. The mapping is private and writable, since libdw rewrites the header of
 * a compressed section in place when it unpacks it (elf_compress(3)). libelf checks section and
 * program headers against that bound; whatever a header says of places in the file is checked here
 * again before it is followed.
 */

static bool in_file(const struct elf_file *elf, uint64_t offset, uint64_t len)
{
	return offset <= elf->len && len <= elf->len - offset;
}

static int read_loads(struct elf_file *elf, size_t count, struct err *err)
{
	elf->loads = calloc(count ? count : 1, sizeof(*elf->loads));
	if (!elf->loads)
		return err_nomem(err);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(elf->elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		if (ph.p_vaddr + ph.p_memsz < ph.p_vaddr || ph.p_filesz > ph.p_memsz)
			continue;
		elf->loads[elf->load_count++] = (struct elf_load){
			.vaddr = ph.p_vaddr,
			.offset = ph.p_offset,
			.file_size = ph.p_filesz,
			.mem_size = ph.p_memsz,
			.executable = ph.p_flags & PF_X,
		};
	}
	return 0;
}

static bool take_build_id(struct elf_file *elf, Elf_Data *notes)
{
	size_t at = 0, next, name, desc;
	GElf_Nhdr note;

	while (notes && (next = gelf_getnote(notes, at, &note, &name, &desc)) > 0) {
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
		    memcmp((char *)notes->d_buf + name, "GNU", sizeof("GNU")) == 0 &&
		    note.n_descsz > 0) {
			elf->build_id_len = note.n_descsz < ELF_BUILD_ID_MAX ? note.n_descsz
									     : ELF_BUILD_ID_MAX;
			memcpy(elf->build_id, (char *)notes->d_buf + desc, elf->build_id_len);
			return true;
		}
		at = next;
	}
	return false;
}

/* By program headers, as the kernel finds it, else by sections (kernel modules have no others). */
static void read_build_id(struct elf_file *elf, size_t count)
{
	Elf_Scn *scn = NULL;

	for (size_t i = 0; i < count; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(elf->elf, (int)i, &ph) || ph.p_type != PT_NOTE ||
		    !in_file(elf, ph.p_offset, ph.p_filesz))
			continue;
		if (take_build_id(elf,
				  elf_getdata_rawchunk(elf->elf, (int64_t)ph.p_offset, ph.p_filesz,
						       ph.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR)))
			return;
	}
	while ((scn = elf_nextscn(elf->elf, scn))) {
		GElf_Shdr sh;

		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_NOTE &&
		    take_build_id(elf, elf_getdata(scn, NULL)))
			return;
	}
}

static bool has_compressed(const struct elf_file *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf->elf, scn)))
		if (gelf_getshdr(scn, &sh) && sh.sh_flags & SHF_COMPRESSED)
			return true;
	return false;
}

static int read_headers(struct elf_file *elf, const char *what, struct err *err)
{
	GElf_Ehdr ehdr;
	size_t count;
	int ret;

	elf_version(EV_CURRENT);
	elf->elf = elf_memory((char *)(uintptr_t)elf->bytes, elf->len);
	if (!elf->elf || elf_kind(elf->elf) != ELF_K_ELF || !gelf_getehdr(elf->elf, &ehdr))
		return err_set(err, ERR_CORRUPT, "%s is not an ELF file", what);
	if (elf_getphdrnum(elf->elf, &count) < 0)
		return err_set(err, ERR_CORRUPT, "%s has broken program headers: %s", what,
			       elf_errmsg(-1));
	elf->swap = ehdr.e_ident[EI_DATA] !=
		    (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB);
	elf->machine = ehdr.e_machine;
	elf->type = ehdr.e_type;
	elf->compressed = has_compressed(elf);
	ret = read_loads(elf, count, err);
	if (!ret)
		read_build_id(elf, count);
	return ret;
}

static int map_file(struct elf_file *elf, const char *path, struct err *err)
{
	struct stat st;
	int fd = io_open_regular(path, &st, err), ret = 0;
	void *bytes;

	if (fd < 0)
		return fd;
	if (st.st_size <= 0) {
		ret = err_set(err, ERR_CORRUPT, "%s is not an ELF file", path);
	} else {
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_NORESERVE, fd, 0);
		if (bytes == MAP_FAILED) {
			ret = err_sys(err, errno, "cannot map %s", path);
		} else {
			elf->bytes = bytes;
			elf->len = (size_t)st.st_size;
			elf->mapped = true;
		}
	}
	close(fd);
	return ret;
}

int elf_open(struct elf_file **out, const char *path, struct err *err)
{
	struct elf_file *elf = calloc(1, sizeof(*elf));
	int ret;

	*out = NULL;
	if (!elf)
		return err_nomem(err);
	elf->path = strdup(path);
	ret = elf->path ? map_file(elf, path, err) : err_nomem(err);
	if (!ret)
		ret = read_headers(elf, path, err);
	if (ret)
		elf_close(elf);
	else
		*out = elf;
	return ret;
}

int elf_open_memory(struct elf_file **out, const void *bytes, size_t len, struct err *err)
{
	struct elf_file *elf = calloc(1, sizeof(*elf));
	void *copy = malloc(len ? len : 1);
	int ret;

	*out = NULL;
	if (!elf || !copy) {
		free(elf);
		free(copy);
		return err_nomem(err);
	}
	if (len)
		memcpy(copy, bytes, len);
	elf->bytes = copy;
	elf->len = len;
	ret = read_headers(elf, "the image", err);
	if (ret)
		elf_close(elf);
	else
		*out = elf;
	return ret;
}

/* Its section headers are its end (arch/x86/entry/vdso, arch/arm64/kernel/vdso). */
int elf_open_vdso(struct elf_file **out, struct err *err)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	Elf64_Ehdr header;

	*out = NULL;
	if (!image)
		return err_set(err, ERR_NOT_FOUND, "this process has no vDSO");
	memcpy(&header, image, sizeof(header));
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shoff > VDSO_BYTES_MAX)
		return err_set(err, ERR_UNSUPPORTED, "the vDSO is not a 64-bit ELF file");
	return elf_open_memory(out, image,
			       header.e_shoff + (size_t)header.e_shnum * header.e_shentsize, err);
}

void elf_close(struct elf_file *elf)
{
	if (!elf)
		return;
	elf_inlines_free(elf->inlines);
	elf_lines_free(elf->lines);
	elf_index_free(elf->index);
	elf_plt_free(elf->plt);
	elf_close(elf->debug);
	elf_close(elf->mini);
	free(elf->path);
	if (elf->elf)
		elf_end(elf->elf);
	free(elf->loads);
	if (elf->mapped)
		munmap((void *)(uintptr_t)elf->bytes, elf->len);
	else
		free((void *)(uintptr_t)elf->bytes);
	free(elf);
}

/* Not where libdw may have written to the mapping: that would be undone. */
void elf_was_read(struct elf_file *elf, uint64_t bytes)
{
	elf->read_once += bytes;
	if (elf->read_once < READ_ONCE_MAX || !elf->mapped || elf->compressed)
		return;
	madvise((void *)(uintptr_t)elf->bytes, elf->len, MADV_DONTNEED);
	elf->read_once = 0;
}

uint16_t elf_machine(const struct elf_file *elf)
{
	return elf->machine;
}

bool elf_is_position_independent(const struct elf_file *elf)
{
	return elf->type == ET_DYN;
}

size_t elf_build_id(const struct elf_file *elf, uint8_t id[ELF_BUILD_ID_MAX])
{
	memcpy(id, elf->build_id, elf->build_id_len);
	return elf->build_id_len;
}

bool elf_vaddr(const struct elf_file *elf, uint64_t offset, uint64_t *vaddr)
{
	for (size_t i = 0; i < elf->load_count; i++) {
		const struct elf_load *load = &elf->loads[i];

		if (offset >= load->offset && offset - load->offset < load->file_size) {
			*vaddr = load->vaddr + (offset - load->offset);
			return true;
		}
	}
	return false;
}

/*
 * The segment that a mapping at this file offset is of. The loader rounds a segment's offset down
 * to a page, so two segments that share a page of the file both fit its start: the executable one
 * is meant, since that is what samples lie in.
 */
static const struct elf_load *mapped_load(const struct elf_file *elf, uint64_t pgoff)
{
	static const uint64_t page_sizes[] = {4096, 16384, 65536};
	const struct elf_load *found = NULL;

	for (size_t p = 0; !found && p < sizeof(page_sizes) / sizeof(page_sizes[0]); p++)
		for (size_t i = 0; i < elf->load_count; i++) {
			const struct elf_load *load = &elf->loads[i];

			if ((load->offset & -page_sizes[p]) == pgoff &&
			    (!found || (load->executable && !found->executable)))
				found = load;
		}
	/* A part of a segment, whose rest was protected or mapped otherwise. */
	for (size_t i = 0; !found && i < elf->load_count; i++) {
		const struct elf_load *load = &elf->loads[i];

		if (pgoff >= load->offset && pgoff - load->offset < load->file_size)
			found = load;
	}
	return found;
}

bool elf_bias(const struct elf_file *elf, uint64_t map_start, uint64_t map_pgoff, uint64_t *bias)
{
	const struct elf_load *load = mapped_load(elf, map_pgoff);

	if (!load)
		return false;
	*bias = map_start - (load->vaddr - load->offset + map_pgoff);
	return true;
}

int elf_read(const struct elf_file *elf, uint64_t vaddr, void *buf, size_t len)
{
	char *out = buf;

	while (len) {
		const struct elf_load *load = NULL;
		uint64_t skip, n, in_bytes;

		for (size_t i = 0; !load && i < elf->load_count; i++)
			if (vaddr >= elf->loads[i].vaddr &&
			    vaddr - elf->loads[i].vaddr < elf->loads[i].mem_size)
				load = &elf->loads[i];
		if (!load)
			return -1;
		skip = vaddr - load->vaddr;
		n = load->mem_size - skip < len ? load->mem_size - skip : len;
		in_bytes = skip < load->file_size ? load->file_size - skip : 0;
		in_bytes = in_bytes < n ? in_bytes : n;
		if (in_bytes &&
		    (load->offset + skip < skip || !in_file(elf, load->offset + skip, in_bytes)))
			return -1;
		if (in_bytes)
			memcpy(out, elf->bytes + load->offset + skip, in_bytes);
		memset(out + in_bytes, 0, n - in_bytes);
		out += n;
		vaddr += n;
		len -= n;
	}
	return 0;
}

static bool find_section(const struct elf_file *elf, const char *name, GElf_Shdr *sh)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf->elf, &names) < 0)
		return false;
	while ((scn = elf_nextscn(elf->elf, scn))) {
		const char *have;

		if (!gelf_getshdr(scn, sh))
			continue;
		have = elf_strptr(elf->elf, names, sh->sh_name);
		if (have && strcmp(have, name) == 0)
			return true;
	}
	return false;
}

bool elf_section(const struct elf_file *elf, const char *name, uint64_t *vaddr, uint64_t *size)
{
	GElf_Shdr sh;

	if (!find_section(elf, name, &sh))
		return false;
	*vaddr = sh.sh_addr;
	*size = sh.sh_size;
	return true;
}

bool elf_section_in_file(const struct elf_file *elf, const char *name, uint64_t *vaddr,
			 uint64_t *size)
{
	GElf_Shdr sh;

	if (!find_section(elf, name, &sh) || sh.sh_type == SHT_NOBITS)
		return false;
	*vaddr = sh.sh_addr;
	*size = sh.sh_size;
	return true;
}

uint64_t elf_entry(const struct elf_file *elf)
{
	GElf_Ehdr ehdr;

	return gelf_getehdr(elf->elf, &ehdr) ? ehdr.e_entry : 0;
}

struct Elf *elf_libelf(struct elf_file *elf, bool debug)
{
	if (debug)
		elf = elf_debug_file(elf);
	return elf ? elf->elf : NULL;
}

/* An unpacked one only: the packed forms are for sections of DWARF. */
const void *elf_section_bytes(const struct elf_file *elf, const char *name, size_t *len)
{
	GElf_Shdr sh;

	if (!find_section(elf, name, &sh) || sh.sh_type == SHT_NOBITS ||
	    sh.sh_flags & SHF_COMPRESSED || !in_file(elf, sh.sh_offset, sh.sh_size))
		return NULL;
	*len = sh.sh_size;
	return elf->bytes + sh.sh_offset;
}
