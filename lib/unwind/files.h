#ifndef PYPERF_FILES_H
#define PYPERF_FILES_H

#include "base/vec.h"
#include "unwind/rules.h"
#include "unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>

/* The modules of one process state and the files behind them, for all back ends. */

struct arch;
struct cfi;
struct elf_file;

/* A file, opened once per id; owned by the unwind_files. */
struct unwind_file {
	struct elf_file *elf; /* NULL: cannot be opened */
	struct cfi *cfi;      /* NULL until asked for */
};

/* The rule of a file at a vaddr, by its tables. */
uint32_t unwind_file_rule(struct unwind_files *files, struct unwind_file *file, uint64_t vaddr);
/* The same for generated code that has tables, `offset` behind its start. */
uint32_t unwind_code_rule(struct unwind_files *files, const struct arch *arch,
			  const struct unwind_code *code, uint64_t offset);
struct rules *unwind_files_rules(struct unwind_files *files);

struct module {
	uint64_t start, end;
	uint64_t bias; /* the address of the file's vaddr 0 */
	uint32_t id;
	bool usable; /* the file is an ELF file of this architecture and the bias is known */
	struct unwind_file *file;
};

struct modules {
	VEC_OF(struct module) /* sorted by start, disjoint */
	struct unwind_files *files;
	struct unwind_source source; /* its arch is set */
	size_t last;
};

void modules_init(struct modules *modules, struct unwind_files *files,
		  const struct unwind_source *source);
void modules_fini(struct modules *modules);
/* Asked of the source once. NULL where nothing is mapped or memory ran out; valid until the next
 * call. */
const struct module *modules_find(struct modules *modules, uint64_t addr);

/* The rule for a frame in the tables of its module; NULL where there is none. The libraries follow
 * frame pointers there, and tell neither that nor an end from a failure. */
const struct rule *modules_rule(struct modules *modules, const struct unwind_frame *frame);

/* Memory of the target at the sample: the copy of its stack, then the source. */
bool modules_read(struct modules *modules, const struct unwind_input *input, uint64_t addr,
		  void *buf, size_t len);
/* What it means that an address could not be read: that the copy ends, or something else. */
enum unwind_end unwind_missing(const struct unwind_input *input, const struct unwind_stack *out,
			       uint64_t addr);
/* Is it such an end? */
bool unwind_is_missing(enum unwind_end end);

/* An ELF file put together again from the segments of it that are in memory: what is left of the
 * vDSO and of files that cannot be opened. NULL where there is none. */
struct elf_file *image_of_memory(const struct unwind_source *source, uint64_t map_start,
				 uint64_t file_offset);

#endif
