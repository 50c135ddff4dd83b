#include "perfmap/runtime.h"

#include "base/log.h"
#include "base/map.h"
#include "base/vec.h"
#include "perfmap/discover.h"
#include "perfmap/embedded.h"
#include "perfmap/proof.h"
#include "perfmap/thread_keys.h"
#include "process/memory.h"
#include "process/proc.h"
#include "symbol/elf.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * What a file can be: the one that defines _PyRuntime, the C library that says where a thread's
 * keys lie, or neither. A file's facts are read once; what a process adds is where it is mapped.
 */
#define RODATA_MAX (256u << 20)
#define DOUBTS_MAX 20 /* looks at frames that make no sense, until the layout is given up */

struct file_facts {
	uint64_t dev, ino;
	int64_t mtime_ns;
	bool has_runtime, has_tsd;
	uint64_t vaddr0; /* vaddr of file offset 0 */
	/* has_runtime */
	uint64_t runtime, tss_key, current; /* 0: has none */
	int32_t variable;
	struct py_version version;
	struct py_layout layout;
	bool supported;
	bool proved; /* a thread's frames were as the layout has them */
	uint8_t doubts;
	char why[160]; /* not supported */
	/* has_tsd */
	struct py_tsd tsd;
};

struct runtime_cache {
	struct map by_file; /* hash of dev and inode -> index + 1 */
	struct {
		VEC_OF(struct file_facts)
	} files;
	struct embedded embedded;
};

struct runtime_cache *runtime_cache_new(void)
{
	return calloc(1, sizeof(struct runtime_cache));
}

void runtime_cache_free(struct runtime_cache *cache)
{
	if (!cache)
		return;
	map_fini(&cache->by_file);
	vec_fini(&cache->files);
	embedded_fini(&cache->embedded);
	free(cache);
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool runtime_is_candidate(const char *path)
{
	const char *name = last_component(path);

	/* "_ssl.cpython-312-x86_64-linux-gnu.so" is an extension module. */
	return strstr(name, "python") && !strstr(name, ".cpython-");
}

bool runtime_may_be_in(struct runtime_cache *cache, pid_t pid, const char *path, uint64_t identity)
{
	return runtime_is_candidate(path) || (!strstr(last_component(path), ".cpython-") &&
					      embedded_look(&cache->embedded, pid, path, identity));
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_musl(const char *path)
{
	const char *name = last_component(path);

	return starts_with(name, "ld-musl") || starts_with(name, "libc.musl");
}

/* glibc keeps its description in libc, before 2.34 in libpthread. */
static bool is_libc_candidate(const char *path)
{
	const char *name = last_component(path);

	return starts_with(name, "libc.so") || starts_with(name, "libc-") ||
	       starts_with(name, "libpthread") || is_musl(path);
}

/* The version in a name such as "libpython3.9.so.1.0", for those before Py_Version (3.11). */
static struct py_version version_of_path(const char *path)
{
	struct py_version version = {.micro = -1};
	const char *at = strstr(last_component(path), "python");

	if (!at || sscanf(at, "python%d.%d", &version.major, &version.minor) != 2)
		version = (struct py_version){.micro = -1};
	return version;
}

/* Reads a data symbol's first bytes; false where the file has none or it is too short. */
static bool read_symbol(struct elf_file *elf, const char *name, void *buf, size_t len)
{
	struct elf_symbol symbol;

	return elf_symbol_by_name(elf, name, &symbol) && elf_read(elf, symbol.vaddr, buf, len) == 0;
}

/* Where the runtime keeps the thread key and the current thread: in _PyRuntime, in 3.6 in variables
 * of their own. A key that is in neither place, for want of symbols or of a row for that version,
 * is found in each process by what its threads hold. */
static int read_places(struct elf_file *elf, struct file_facts *facts, struct err *err)
{
	const struct py_version *version = &facts->version;
	unsigned char code[32];
	struct elf_symbol symbol;

	if (version->current)
		facts->current = facts->runtime + version->current;
	else if (facts->layout.key_bare &&
		 elf_symbol_by_name(elf, "_PyThreadState_Current", &symbol))
		facts->current = symbol.vaddr;
	if (version->tss_key)
		facts->tss_key = facts->runtime + version->tss_key;
	else if (facts->layout.key_bare && elf_symbol_by_name(elf, "autoTLSkey", &symbol))
		facts->tss_key = symbol.vaddr;
	else if (elf_machine(elf) == EM_X86_64 &&
		 read_symbol(elf, "PyGILState_GetThisThreadState", code, sizeof(code)) &&
		 py_variable_of_code(code, sizeof(code), &facts->variable))
		return 0;
	else if (!version->interpreters && !facts->current)
		return err_set(err, ERR_UNSUPPORTED,
			       "CPython %d.%d does not tell where its threads are", version->major,
			       version->minor);
	return 0;
}

/* "cpython-38" is the tag of that version's compiled modules (Python/sysmodule.c). */
static struct py_version version_of_tag(struct elf_file *elf)
{
	static const char tag[] = "cpython-3";
	struct py_version version = {.micro = -1};
	uint64_t vaddr, size;
	char *text, *at;

	if (!elf_section(elf, ".rodata", &vaddr, &size) || size > RODATA_MAX)
		return version;
	text = malloc(size + 1);
	if (text && elf_read(elf, vaddr, text, size) == 0) {
		text[size] = '\0';
		at = memmem(text, size, tag, strlen(tag));
		if (at && sscanf(at + strlen(tag), "%2d", &version.minor) == 1)
			version.major = 3;
	}
	free(text);
	return version;
}

static struct py_version version_of_file(struct elf_file *elf, const char *path)
{
	struct py_version version;
	uint32_t hex;

	if (read_symbol(elf, "Py_Version", &hex, sizeof(hex)))
		return py_version_of_hex(hex);
	version = version_of_path(path);
	return version.major ? version : version_of_tag(elf);
}

static bool find_runtime(struct elf_file *elf, uint64_t *vaddr)
{
	struct elf_symbol symbol;
	uint64_t size;

	/* Every CPython has the second one, from 3.7 on the first; stripped ones from 3.13 on a
	 * section of that name. */
	if (!elf_symbol_by_name(elf, "_PyRuntime", &symbol) &&
	    !elf_symbol_by_name(elf, "PyEval_EvalCode", &symbol))
		return elf_section(elf, ".PyRuntime", vaddr, &size);
	*vaddr = symbol.vaddr;
	return true;
}

static void read_runtime(struct elf_file *elf, const char *path, struct file_facts *facts)
{
	unsigned char offsets[PY_DEBUG_OFFSETS_BYTES];
	struct err err = {0};
	uint64_t hex = 0;
	size_t len = 0, proved;

	if (!find_runtime(elf, &facts->runtime))
		return;
	facts->has_runtime = true;
	if (elf_read(elf, facts->runtime, offsets, sizeof(offsets)) == 0)
		len = sizeof(offsets);
	if (len && memcmp(offsets, "xdebugpy", 8) == 0)
		memcpy(&hex, offsets + 8, sizeof(hex));
	facts->version = hex ? py_version_of_hex(hex) : version_of_file(elf, path);
	if (py_layout_find(&facts->version, offsets, len, &facts->layout, &err) == 0 &&
	    py_prove_by_types(elf, &facts->version, &facts->layout, &proved, &err) == 0 &&
	    read_places(elf, facts, &err) == 0)
		facts->supported = true;
	else
		snprintf(facts->why, sizeof(facts->why), "%.*s", (int)sizeof(facts->why) - 1,
			 err.text);
}

/* A file that is no ELF file is kept as one that has nothing. */
static void read_file_facts(const char *path, const char *name, struct file_facts *facts)
{
	struct elf_file *elf;

	if (elf_open(&elf, path, NULL) < 0)
		return;
	if (!elf_vaddr(elf, 0, &facts->vaddr0))
		facts->vaddr0 = 0;
	if (!is_libc_candidate(name))
		read_runtime(elf, name, facts);
	/* A program that is linked statically has the C library in it, too. */
	if (facts->has_runtime || is_libc_candidate(name))
		facts->has_tsd = thread_keys_read(elf, &facts->tsd);
	elf_close(elf);
}

/* The facts of a mapped file, from the cache if they can be. NULL with err set on failure. */
static struct file_facts *file_facts(struct runtime_cache *cache, pid_t pid,
				     const struct proc_map *map, struct err *err)
{
	struct file_facts facts = {0}, *slot;
	char path[32];
	uint64_t *index;
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	fd = proc_open_map(pid, map, path, &st, err);
	if (fd < 0)
		return NULL;
	facts.dev = st.st_dev;
	facts.ino = st.st_ino;
	facts.mtime_ns = st.st_mtim.tv_sec * 1000000000ll + st.st_mtim.tv_nsec;
	index = map_put(&cache->by_file,
			map_mix(facts.dev, facts.ino) ^ map_mix(0, (uint64_t)facts.mtime_ns), NULL);
	if (!index) {
		close(fd);
		err_nomem(err);
		return NULL;
	}
	slot = *index ? &cache->files.items[*index - 1] : NULL;
	if (slot && slot->dev == facts.dev && slot->ino == facts.ino &&
	    slot->mtime_ns == facts.mtime_ns) {
		close(fd);
		return slot;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_file_facts(path, map->path, &facts);
	close(fd);
	slot = vec_push(&cache->files);
	if (!slot) {
		err_nomem(err);
		return NULL;
	}
	*slot = facts;
	*index = cache->files.len;
	return slot;
}

struct search {
	struct runtime_cache *cache;
	pid_t pid;
	bool musl, found_runtime, found_tsd;
	struct file_facts runtime, tsd;
	size_t runtime_index; /* of its facts in the cache */
	uint64_t runtime_bias;
	char path[256];
	int failed; /* worst failure on the way */
	struct err err;
};

static int look_at_map(const struct proc_map *map, void *ctx)
{
	struct search *search = ctx;
	struct file_facts *facts;
	bool libc;

	/* The first mapping of a file is that of its offset 0. */
	if (map->pgoff != 0 || map->path[0] != '/')
		return 0;
	if (is_musl(map->path))
		search->musl = true;
	libc = is_libc_candidate(map->path);
	if (libc ? search->found_tsd
		 : search->found_runtime || (!runtime_is_candidate(map->path) &&
					     !embedded_knows(&search->cache->embedded, map->path)))
		return 0;
	facts = file_facts(search->cache, search->pid, map, &search->err);
	if (!facts) {
		search->failed = search->err.code;
		return search->failed == ERR_NOMEM ? search->failed : 0;
	}
	if (facts->has_tsd) {
		search->found_tsd = true;
		search->tsd = *facts;
	}
	if (facts->has_runtime) {
		search->found_runtime = true;
		search->runtime = *facts;
		search->runtime_index = (size_t)(facts - search->cache->files.items);
		search->runtime_bias = map->start - facts->vaddr0;
		snprintf(search->path, sizeof(search->path), "%.*s", (int)sizeof(search->path) - 1,
			 map->path);
	}
	return search->found_runtime && search->found_tsd;
}

static bool is_debug_build(const char *path)
{
	struct py_version version = version_of_path(path);
	char suffix[32];

	snprintf(suffix, sizeof(suffix), "python%d.%dd", version.major, version.minor);
	return version.major && strstr(last_component(path), suffix);
}

/* Where one process has what its files say. */
static int place(const struct search *search, struct py_process *process, struct err *err)
{
	const struct file_facts *facts = &search->runtime;
	struct memory_process live;
	struct memory memory;
	bool found;

	*process = (struct py_process){
		.layout = facts->layout,
		.tsd = search->tsd.tsd,
		.runtime = search->runtime_bias + facts->runtime,
	};
	if (facts->current)
		process->current = search->runtime_bias + facts->current;
	process->variable[0] = facts->variable;
	if (facts->tss_key)
		process->tss_key = search->runtime_bias + facts->tss_key;
	if (facts->tss_key || facts->variable)
		return RUNTIME_READY;
	memory_process_init(&live, search->pid);
	memory = memory_of_process(&live);
	found = py_find_key(&facts->version, &memory, process);
	memory_process_fini(&live);
	if (found)
		return RUNTIME_READY;
	err_set(err, ERR_UNSUPPORTED, "%s has no threads yet", search->path);
	return RUNTIME_PARTIAL;
}

/* Whether the process bears out its file's layout; one process that does is enough for all. */
static int believe(struct file_facts *facts, pid_t pid, const struct py_process *process,
		   struct runtime_info *info, struct err *err)
{
	struct memory_process live;
	struct memory memory;
	enum py_proof proof = PY_PROOF_GOOD;
	struct err why = {0};

	if (!facts->proved) {
		memory_process_init(&live, pid);
		memory = memory_of_process(&live);
		proof = py_prove_by_frames(&memory, process);
		memory_process_fini(&live);
	}
	facts->proved = proof == PY_PROOF_GOOD;
	info->unproved = proof == PY_PROOF_NONE;
	if (proof != PY_PROOF_BAD)
		return RUNTIME_READY;
	info->doubtful = true;
	err_set(&why, ERR_UNSUPPORTED,
		"this CPython %d.%d is not built as others are: its frames lead nowhere",
		info->major, info->minor);
	if (++facts->doubts == DOUBTS_MAX)
		facts->supported = info->supported = false;
	snprintf(facts->why, sizeof(facts->why), "%.*s", (int)sizeof(facts->why) - 1, why.text);
	err_set(err, ERR_UNSUPPORTED, "%s (%s)", facts->why, info->path);
	return RUNTIME_PARTIAL;
}

int runtime_find(struct runtime_cache *cache, pid_t pid, struct py_process *process,
		 struct runtime_info *info, struct err *err)
{
	struct search search = {.cache = cache, .pid = pid};
	int ret;

	memset(info, 0, sizeof(*info));
	ret = proc_each_map(pid, look_at_map, &search, err);
	if (ret < 0)
		return ret;
	if (!search.found_runtime) {
		if (search.failed && err)
			*err = search.err;
		return search.failed ? search.failed : RUNTIME_NONE;
	}
	*info = (struct runtime_info){
		.major = search.runtime.version.major,
		.minor = search.runtime.version.minor,
		.micro = search.runtime.version.micro,
		.free_threaded = search.runtime.version.free_threaded,
		.debug = is_debug_build(search.path),
		.supported = search.runtime.supported,
	};
	memcpy(info->path, search.path, sizeof(info->path));
	if (!info->supported) {
		err_set(err, ERR_UNSUPPORTED, "%s (%s)", search.runtime.why, info->path);
		return RUNTIME_PARTIAL;
	}
	if (!search.found_tsd) {
		info->supported = !search.musl;
		err_set(err, ERR_UNSUPPORTED, "%s runs on %s", info->path,
			search.musl ? "a musl whose thread keys are not known"
				    : "a C library that is not mapped yet");
		return RUNTIME_PARTIAL;
	}
	ret = place(&search, process, err);
	return ret == RUNTIME_READY
		       ? believe(&cache->files.items[search.runtime_index], pid, process, info, err)
		       : ret;
}
