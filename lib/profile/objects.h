#ifndef PYPERF_OBJECTS_H
#define PYPERF_OBJECTS_H

#include "base/bytes.h"
#include "data/data.h"
#include "process/process.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The files on this machine that stand for the objects of a recording.
 *
 * A file is used only when it is the recorded one: its build-id is the same or, where the recording
 * has no build-id, the recording is from this host. Opened at first use, once. Where there is none,
 * the names that the recording carries stand in.
 */
struct objects;
struct elf_file;
struct elf_symbol;

struct objects *objects_new(const struct process_table *processes, const struct data_info *info);
void objects_free(struct objects *objects);

/* What the recording itself knows of its objects; used where the file is not here. To be called
 * before anything is asked. */
int objects_load_saved(struct objects *objects, struct bytes section, struct err *err);

/* NULL where there is no such file. Stays open until objects_free(). */
struct elf_file *objects_elf(struct objects *objects, uint32_t dso);
/* Of that file; NULL where there is none or it has no path. */
const char *objects_path(struct objects *objects, uint32_t dso);
/* A file offset of the object as a vaddr; the offset itself and false where it is not known. */
bool objects_vaddr(struct objects *objects, uint32_t dso, uint64_t offset, uint64_t *vaddr);
/* The function at a vaddr; debug files are asked too. Its name stays valid until objects_free(). */
bool objects_symbol(struct objects *objects, uint32_t dso, uint64_t vaddr,
		    struct elf_symbol *symbol);
bool objects_line(struct objects *objects, uint32_t dso, uint64_t vaddr, const char **file,
		  uint32_t *line);
/* From where to where the function goes that covers the address, where it has no symbol. */
bool objects_range(struct objects *objects, uint32_t dso, uint64_t vaddr, uint64_t *start,
		   uint64_t *size);
/* A function of the kernel that the recording names, with its module behind a tab. */
bool objects_kernel_symbol(struct objects *objects, uint64_t addr, struct elf_symbol *symbol);
struct elf_inlined;
/* As elf_inlined(). */
size_t objects_inlined(struct objects *objects, uint32_t dso, uint64_t vaddr,
		       struct elf_inlined *calls, size_t max);
/* Does the address lie in CPython's eval loop? */
bool objects_is_eval(struct objects *objects, uint32_t dso, uint64_t vaddr);

/* Was the recording made on this host, under the kernel that runs now? */
bool objects_same_host(const struct objects *objects);
bool objects_same_kernel(const struct objects *objects);
/* Objects whose file here is another build, and of which the recording knows nothing itself. */
uint64_t objects_replaced(const struct objects *objects);

#endif
