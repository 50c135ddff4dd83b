#include "record/hits.h"

#include "base/arena.h"
#include "base/intern.h"
#include "base/log.h"
#include "base/map.h"
#include "base/partition.h"
#include "base/progress.h"
#include "base/vec.h"
#include "perfmap/eval.h"
#include "symbol/elf.h"
#include "symbol/kallsyms.h"
#include "symbol/saved.h"
#include "symbol/saved_inlines.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * Addresses are kept as they come, without their process, and mappings are never dropped: at the
 * end each mapping takes the addresses that lie in it. Of two processes that map files at one
 * address both files are asked, which at worst names a function that no sample hit; in return
 * nothing depends on the order of records from several rings.
 */
#define ADDRESSES_MAX (1u << 22)
#define MAPPINGS_MAX (1u << 20)
#define FILES_OPEN_MAX 1024u
#define RECENT 8192u /* a power of two */
/* What is spent at the end to tell what is inlined: the program is done, and its user waits. */
#define INLINES_NS UINT64_C(2000000000)

struct file {
	uint32_t path; /* string */
	int fd;	       /* -1: it could not be opened, or is the vDSO */
	bool vdso;
	uint8_t build_id[ELF_BUILD_ID_MAX];
	uint32_t build_id_len;
	size_t first; /* mapping + 1, the latest */
};

struct mapping {
	uint64_t start, end, pgoff;
	size_t next; /* of the same file, + 1 */
};

struct hits {
	struct roots *roots;
	struct intern paths, keys;
	struct {
		VEC_OF(struct file)
	} files; /* by key - 1 */
	struct {
		VEC_OF(struct mapping)
	} mappings;
	struct map known; /* hash of a mapping's words */
	struct map addresses, kernel;
	uint64_t recent[RECENT];
	size_t open;
	uint64_t inlines_until; /* CPU time, ns */
	uint64_t not_expanded;	/* addresses for which that was too short */
	char fd_path[32];	/* of hits_path() */
};

struct hits *hits_new(struct roots *roots)
{
	struct hits *hits = calloc(1, sizeof(*hits));

	if (!hits)
		return NULL;
	hits->roots = roots;
	intern_init(&hits->paths);
	intern_init(&hits->keys);
	return hits;
}

void hits_free(struct hits *hits)
{
	if (!hits)
		return;
	for (size_t i = 0; i < hits->files.len; i++)
		if (hits->files.items[i].fd >= 0)
			close(hits->files.items[i].fd);
	vec_fini(&hits->files);
	vec_fini(&hits->mappings);
	intern_fini(&hits->paths);
	intern_fini(&hits->keys);
	map_fini(&hits->known);
	map_fini(&hits->addresses);
	map_fini(&hits->kernel);
	free(hits);
}

static int open_mapped(const struct hits *hits, const struct record_mmap *map)
{
	struct proc_map in_proc = {
		.start = map->addr,
		.end = map->addr + map->len,
		.ino = map->ino,
		.maj = map->maj,
		.min = map->min,
		.path = map->filename,
	};
	pid_t pid = (pid_t)map->pid;
	struct stat st;

	return proc_open_map(pid, &in_proc, roots_path(hits->roots, pid), &st, NULL);
}

/* A file is one name and one build-id, or where there is none one inode. */
struct file_key {
	uint32_t path, id_len;
	uint64_t ino;
	uint8_t build_id[ELF_BUILD_ID_MAX + 4];
};

static struct file_key file_key(uint32_t path, const uint8_t *build_id, uint32_t id_len,
				uint64_t ino)
{
	struct file_key key = {.path = path};

	if (id_len && id_len <= ELF_BUILD_ID_MAX) {
		key.id_len = id_len;
		memcpy(key.build_id, build_id, id_len);
	} else {
		key.ino = ino;
	}
	return key;
}

const char *hits_path(struct hits *hits, const char *name, const uint8_t *build_id, uint32_t len)
{
	struct file_key key = file_key(intern_find(&hits->paths, name, strlen(name)), build_id, len,
				       0);
	uint32_t id = key.id_len ? intern_find(&hits->keys, &key, sizeof(key)) : INTERN_NONE;

	if (id == INTERN_NONE || id > hits->files.len || hits->files.items[id - 1].fd < 0)
		return NULL;
	snprintf(hits->fd_path, sizeof(hits->fd_path), "/proc/self/fd/%d",
		 hits->files.items[id - 1].fd);
	return hits->fd_path;
}

/* The same in every process, and in ours. */
static bool is_vdso(const char *path)
{
	return strcmp(path, "[vdso]") == 0;
}

static struct file *file_of(struct hits *hits, const struct record_mmap *map)
{
	uint32_t path = intern_str(&hits->paths, map->filename), id;
	struct file_key key = file_key(path, map->build_id, map->build_id_len, map->ino);
	struct file *file;

	id = intern_add(&hits->keys, &key, sizeof(key));
	if (path == INTERN_NONE || id == INTERN_NONE)
		return NULL;
	if (id <= hits->files.len)
		return &hits->files.items[id - 1];
	file = vec_push(&hits->files);
	if (!file)
		return NULL;
	file->path = path;
	file->build_id_len = key.id_len;
	memcpy(file->build_id, key.build_id, key.id_len);
	file->vdso = is_vdso(map->filename);
	file->fd = hits->open < FILES_OPEN_MAX && !file->vdso ? open_mapped(hits, map) : -1;
	hits->open += file->fd >= 0;
	return file;
}

void hits_mmap(struct hits *hits, const struct record_mmap *map)
{
	struct mapping *mapping;
	uint64_t words;
	struct file *file;
	bool added;

	if (!hits ||
	    (!is_vdso(map->filename) && (map->filename[0] != '/' || map->filename[1] == '/')) ||
	    !map->len || hits->mappings.len >= MAPPINGS_MAX)
		return;
	words = map_mix(map_mix(map->addr, map->len), map->pgoff);
	file = file_of(hits, map);
	/* Workers that a server forks map the same again and again. */
	if (!file ||
	    !map_put(&hits->known, map_mix(words, (uint64_t)(file - hits->files.items)), &added) ||
	    !added)
		return;
	mapping = vec_push(&hits->mappings);
	if (!mapping)
		return;
	*mapping = (struct mapping){map->addr, map->addr + map->len, map->pgoff, file->first};
	file->first = hits->mappings.len;
}

static void add_address(struct hits *hits, uint64_t addr)
{
	uint64_t *slot = &hits->recent[map_mix(addr, 0) & (RECENT - 1)];
	struct map *set = addr >> 63 ? &hits->kernel : &hits->addresses;

	if (*slot == addr || set->count >= ADDRESSES_MAX)
		return;
	*slot = addr;
	map_put(set, addr, NULL);
}

void hits_sample(struct hits *hits, const struct record_sample *sample)
{
	bool exact = true; /* the interrupted instruction, not a return address */

	if (!sample->callchain_len)
		add_address(hits, sample->ip);
	for (uint64_t i = 0; i < sample->callchain_len; i++) {
		uint64_t ip = sample->callchain[i];

		if (ip >= (uint64_t)PERF_CONTEXT_MAX) {
			exact = true;
			continue;
		}
		if (ip)
			add_address(hits, ip - !exact);
		exact = false;
	}
	for (uint64_t i = 0; i < sample->calls_len; i++)
		add_address(hits, sample->calls[i].from);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Sorted. */
struct addresses {
	VEC_OF(uint64_t)
};

static int sort_addresses(const struct hits *hits, struct addresses *sorted, struct err *err)
{
	uint64_t addr, *value, *place;
	size_t at = 0;

	if (!vec_reserve(sorted, hits->addresses.count + 1))
		return err_nomem(err);
	while (map_next(&hits->addresses, &at, &addr, &value))
		if ((place = vec_push(sorted)))
			*place = addr;
	qsort(sorted->items, sorted->len, sizeof(*sorted->items), by_value);
	return 0;
}

/* One file at the end. */
struct naming {
	struct elf_file *elf;
	struct eval_ranges eval;
	struct map named; /* start of a function that is in the list */
	struct {
		VEC_OF(struct saved_function)
	} functions;
	struct map expanded; /* addresses that were looked up for `inlines` */
	struct saved_inlines inlines;
};

static int add_function(struct naming *naming, uint64_t vaddr, struct err *err)
{
	struct saved_function function = {.name = ""}, *slot;
	struct elf_symbol symbol;
	bool added;

	if (elf_symbol_at(naming->elf, vaddr, &symbol))
		function = (struct saved_function){symbol.vaddr, symbol.size, symbol.name, false};
	else if (!elf_function_range(naming->elf, vaddr, &function.vaddr, &function.size))
		return 0;
	if (!map_put(&naming->named, function.vaddr, &added))
		return err_nomem(err);
	if (!added)
		return 0;
	function.eval = eval_covers(&naming->eval, function.vaddr);
	slot = vec_push(&naming->functions);
	if (!slot)
		return err_nomem(err);
	*slot = function;
	return 0;
}

static uint64_t cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The debug information of a large program is read where samples are, and as long as there is time.
 */
static int add_inlined(struct hits *hits, struct naming *naming, uint64_t vaddr, struct err *err)
{
	struct elf_inlined calls[ELF_INLINED_MAX];
	size_t count;
	bool added;

	if (!map_put(&naming->expanded, vaddr, &added))
		return err_nomem(err);
	if (!added)
		return 0;
	if (cpu_time() >= hits->inlines_until) {
		hits->not_expanded++;
		return 0;
	}
	count = elf_inlined(naming->elf, vaddr, calls, ELF_INLINED_MAX);
	return saved_inlines_add(&naming->inlines, vaddr, calls, count) ? 0 : err_nomem(err);
}

/* The first address that is not below `start`. */
static size_t lower_bound(const struct addresses *addresses, uint64_t start)
{
	return partition_point(addresses->items, addresses->len, addr, *addr < start);
}

static bool is_hit(const struct hits *hits, const struct file *file,
		   const struct addresses *addresses)
{
	for (size_t at = file->first; at; at = hits->mappings.items[at - 1].next) {
		const struct mapping *mapping = &hits->mappings.items[at - 1];
		size_t i = lower_bound(addresses, mapping->start);

		if (i < addresses->len && addresses->items[i] < mapping->end)
			return true;
	}
	return false;
}

static int name_mapping(struct hits *hits, struct naming *naming, const struct mapping *mapping,
			const struct addresses *addresses, struct err *err)
{
	size_t i = lower_bound(addresses, mapping->start);
	int ret = 0;

	for (; !ret && i < addresses->len && addresses->items[i] < mapping->end; i++) {
		uint64_t vaddr;

		if (!elf_vaddr(naming->elf, addresses->items[i] - mapping->start + mapping->pgoff,
			       &vaddr))
			continue;
		ret = add_function(naming, vaddr, err);
		if (!ret)
			ret = add_inlined(hits, naming, vaddr, err);
	}
	return ret;
}

static bool is_mapped_build(const struct file *file, const struct elf_file *elf)
{
	uint8_t id[ELF_BUILD_ID_MAX];

	return !file->build_id_len || (elf_build_id(elf, id) == file->build_id_len &&
				       !memcmp(id, file->build_id, file->build_id_len));
}

/* What a hit function calls and is called by is not known: stacks may yet be unwound through it.
 * Of an interpreter the whole loop is named. */
static int name_file(struct hits *hits, const struct file *file, struct naming *naming,
		     const struct addresses *addresses, struct strbuf *section, struct err *err)
{
	struct saved_file head = {.path = intern_text(&hits->paths, file->path, NULL),
				  .elf = naming->elf};
	uint8_t id[ELF_BUILD_ID_MAX];
	int ret = eval_find(&naming->eval, naming->elf, NULL, err);

	for (size_t at = file->first; !ret && at; at = hits->mappings.items[at - 1].next)
		ret = name_mapping(hits, naming, &hits->mappings.items[at - 1], addresses, err);
	if (ret || !naming->functions.len)
		return ret;
	for (size_t i = 0; !ret && i < naming->eval.len; i++)
		ret = add_function(naming, naming->eval.items[i].start, err);
	head.build_id = id;
	head.build_id_len = (uint32_t)elf_build_id(naming->elf, id);
	/* No map of it says its build-id. */
	if (file->vdso && !file->build_id_len)
		head.build_id_len = 0;
	if (!ret)
		saved_add(section, &head, naming->functions.items, (uint32_t)naming->functions.len,
			  &naming->inlines);
	return ret;
}

static int store_file(struct hits *hits, const struct file *file, const struct addresses *addresses,
		      struct strbuf *section, struct err *err)
{
	struct naming naming = {0};
	char path[32];
	int ret = 0;

	if ((file->fd < 0 && !file->vdso) || !is_hit(hits, file, addresses))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->fd);
	if ((file->vdso ? elf_open_vdso(&naming.elf, NULL) : elf_open(&naming.elf, path, NULL)) < 0)
		return 0;
	saved_inlines_init(&naming.inlines);
	if (is_mapped_build(file, naming.elf))
		ret = name_file(hits, file, &naming, addresses, section, err);
	elf_close(naming.elf);
	vec_fini(&naming.eval);
	vec_fini(&naming.functions);
	map_fini(&naming.named);
	map_fini(&naming.expanded);
	saved_inlines_fini(&naming.inlines);
	return ret;
}

/* One function of the kernel, once; strings stay valid as long as `kernel`. */
static int add_kernel(struct naming *naming, const struct kallsyms *kernel, uint64_t addr,
		      struct arena *names, struct err *err)
{
	struct saved_function *function;
	struct kallsyms_symbol symbol;
	struct strbuf name = {0};
	bool added;

	if (!kallsyms_find(kernel, addr, &symbol))
		return 0;
	if (!map_put(&naming->named, symbol.start, &added))
		return err_nomem(err);
	if (!added)
		return 0;
	function = vec_push(&naming->functions);
	if (!function)
		return err_nomem(err);
	strbuf_str(&name, symbol.name);
	if (symbol.module[0])
		strbuf_printf(&name, "\t[%s]", symbol.module);
	*function = (struct saved_function){.vaddr = symbol.start,
					    .size = symbol.end - symbol.start,
					    .name = arena_strdup(names, strbuf_text(&name))};
	strbuf_fini(&name);
	return function->name ? 0 : err_nomem(err);
}

/* Where the kernel hides its addresses there is nothing to keep. */
static int store_kernel(const struct hits *hits, struct strbuf *section, struct err *err)
{
	const struct saved_file head = {.path = SAVED_KERNEL};
	struct naming naming = {0};
	struct kallsyms *kernel;
	struct arena names;
	uint64_t addr, *value;
	size_t at = 0;
	int ret = 0;

	if (!hits->kernel.count || kallsyms_open(&kernel, NULL, NULL) < 0)
		return 0;
	arena_init(&names);
	while (!ret && map_next(&hits->kernel, &at, &addr, &value))
		ret = add_kernel(&naming, kernel, addr, &names, err);
	if (!ret && naming.functions.len)
		saved_add(section, &head, naming.functions.items, (uint32_t)naming.functions.len,
			  NULL);
	vec_fini(&naming.functions);
	map_fini(&naming.named);
	arena_fini(&names);
	kallsyms_close(kernel);
	return ret;
}

int hits_store(struct hits *hits, struct data_writer *writer, struct err *err)
{
	struct strbuf section = {0};
	struct addresses addresses = {0};
	size_t empty;
	uint32_t work = progress_start("naming functions", PROGRESS_COUNT, hits->files.len);
	int ret = sort_addresses(hits, &addresses, err);

	hits->inlines_until = cpu_time() + INLINES_NS;
	saved_begin(&section);
	empty = section.len;
	for (size_t i = 0; !ret && i < hits->files.len; i++) {
		ret = store_file(hits, &hits->files.items[i], &addresses, &section, err);
		progress_at(work, i + 1);
	}
	if (!ret)
		ret = store_kernel(hits, &section, err);
	if (hits->not_expanded)
		log_info("what is inlined at %" PRIu64
			 " addresses is not in the recording: to look "
			 "it up took too long; reports on this machine show it all the same",
			 hits->not_expanded);
	if (!ret && strbuf_failed(&section))
		ret = err_nomem(err);
	if (!ret && section.len > empty)
		ret = data_writer_section(writer, DATA_SECTION_SYMBOL, section.buf, section.len,
					  err);
	progress_end(work);
	strbuf_fini(&section);
	vec_fini(&addresses);
	return ret;
}
