#include "profile/objects.h"

#include "base/io.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "perfmap/eval.h"
#include "symbol/elf.h"
#include "symbol/saved.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

struct object {
	bool tried, eval_tried;
	struct elf_file *elf;		  /* holds the code */
	char *path;			  /* of that */
	struct elf_file *debug;		  /* holds symbols and lines; may be NULL */
	const struct saved_object *saved; /* what the recording knows */
	struct eval_ranges eval;
};

struct objects {
	const struct process_table *processes;
	struct saved *saved; /* NULL: the recording has none */
	struct {
		VEC_OF(struct object)
	} list; /* by dso id */
	bool same_host, same_release;
	uint8_t kernel_id[ELF_BUILD_ID_MAX];
	size_t kernel_id_len;
	uint64_t replaced;
};

/* The build-id of the running kernel, from the ELF notes that it shows. */
static size_t read_kernel_id(uint8_t id[ELF_BUILD_ID_MAX])
{
	struct strbuf notes = {0};
	struct bytes b;
	size_t found = 0;

	if (io_read_file("/sys/kernel/notes", &notes, 1u << 16, NULL) < 0) {
		strbuf_fini(&notes);
		return 0;
	}
	b = bytes_of(strbuf_text(&notes), notes.len);
	while (bytes_left(&b) && !b.bad && !found) {
		uint32_t name_len = bytes_u32(&b), desc_len = bytes_u32(&b), type = bytes_u32(&b);
		const char *name = bytes_take(&b, ((size_t)name_len + 3) & ~(size_t)3);
		const uint8_t *desc = bytes_take(&b, ((size_t)desc_len + 3) & ~(size_t)3);

		if (type != NT_GNU_BUILD_ID || !name || !desc || name_len != 4 ||
		    memcmp(name, "GNU", 4) != 0 || desc_len > ELF_BUILD_ID_MAX)
			continue;
		memcpy(id, desc, desc_len);
		found = desc_len;
	}
	strbuf_fini(&notes);
	return found;
}

struct objects *objects_new(const struct process_table *processes, const struct data_info *info)
{
	struct objects *objects = calloc(1, sizeof(*objects));
	struct utsname host;

	if (!objects)
		return NULL;
	objects->processes = processes;
	if (uname(&host) == 0) {
		objects->same_host = info->hostname && !strcmp(info->hostname, host.nodename);
		objects->same_release = info->os_release && !strcmp(info->os_release, host.release);
	}
	objects->kernel_id_len = read_kernel_id(objects->kernel_id);
	return objects;
}

void objects_free(struct objects *objects)
{
	if (!objects)
		return;
	for (size_t i = 0; i < objects->list.len; i++) {
		struct object *object = &objects->list.items[i];

		elf_close(object->elf);
		free(object->path);
		elf_close(object->debug);
		vec_fini(&object->eval);
	}
	vec_fini(&objects->list);
	saved_free(objects->saved);
	free(objects);
}

int objects_load_saved(struct objects *objects, struct bytes section, struct err *err)
{
	saved_free(objects->saved);
	return saved_decode(&objects->saved, section, err);
}

static struct object *object_at(struct objects *objects, uint32_t dso)
{
	while (objects->list.len <= dso)
		if (!vec_push(&objects->list))
			return NULL;
	return &objects->list.items[dso];
}

/* Opens the file where it is the recorded build. */
static struct elf_file *open_build(const struct objects *objects, const struct dso *dso,
				   const char *path, bool *other)
{
	uint8_t id[ELF_BUILD_ID_MAX];
	struct elf_file *elf;
	size_t len;

	if (elf_open(&elf, path, NULL) < 0)
		return NULL;
	len = elf_build_id(elf, id);
	if (dso->build_id_len ? len == dso->build_id_len && !memcmp(id, dso->build_id, len)
			      : objects->same_host)
		return elf;
	*other = dso->build_id_len != 0;
	elf_close(elf);
	return NULL;
}

/* Where separate debug files and copies of recorded files lie, by build-id. */
static const struct {
	const char *home, *folder, *end;
	bool debug;
} stores[] = {
	{NULL, "/usr/lib/debug/.build-id/", ".debug", true},
	{"HOME", "/.debug/.build-id/", "/elf", false},
};

static void open_stores(const struct objects *objects, const struct dso *dso, struct object *object)
{
	struct strbuf path = {0};
	bool other;

	for (size_t i = 0; i < sizeof(stores) / sizeof(stores[0]); i++) {
		struct elf_file **elf = stores[i].debug ? &object->debug : &object->elf;
		const char *home = stores[i].home ? getenv(stores[i].home) : "";

		if (*elf || !home)
			continue;
		strbuf_reset(&path);
		strbuf_printf(&path, "%s%s%02x/", home, stores[i].folder, dso->build_id[0]);
		for (uint32_t j = 1; j < dso->build_id_len; j++)
			strbuf_printf(&path, "%02x", dso->build_id[j]);
		strbuf_str(&path, stores[i].end);
		if (!strbuf_failed(&path))
			*elf = open_build(objects, dso, strbuf_text(&path), &other);
		if (object->elf && !object->path)
			object->path = strdup(strbuf_text(&path));
	}
	strbuf_fini(&path);
}

static struct object *object_open(struct objects *objects, uint32_t id)
{
	const struct dso *dso = process_dso(objects->processes, id);
	struct object *object = dso ? object_at(objects, id) : NULL;
	bool other = false;

	if (!object || object->tried)
		return object;
	object->tried = true;
	object->saved = saved_find(objects->saved, dso->path, dso->build_id, dso->build_id_len);
	if (dso->kind == DSO_VDSO && objects_same_kernel(objects))
		elf_open_vdso(&object->elf, NULL);
	if (dso->kind != DSO_ELF)
		return object;
	/* Without a build-id a file of the name may be any file: in a container, or replaced. */
	if (dso->build_id_len || !object->saved)
		object->elf = open_build(objects, dso, dso->path, &other);
	if (object->elf)
		object->path = strdup(dso->path);
	if (dso->build_id_len)
		open_stores(objects, dso, object);
	if (object->elf && !object->debug)
		elf_fetch_debug_file(object->elf);
	objects->replaced += other && !object->elf && !object->saved;
	return object;
}

struct elf_file *objects_elf(struct objects *objects, uint32_t dso)
{
	struct object *object = object_open(objects, dso);

	return object ? object->elf : NULL;
}

const char *objects_path(struct objects *objects, uint32_t dso)
{
	struct object *object = object_open(objects, dso);

	return object && object->elf ? object->path : NULL;
}

bool objects_vaddr(struct objects *objects, uint32_t dso, uint64_t offset, uint64_t *vaddr)
{
	struct object *object = object_open(objects, dso);

	*vaddr = offset;
	/* A debug file keeps the program headers of the file it was split from. */
	return object && ((object->elf && elf_vaddr(object->elf, offset, vaddr)) ||
			  (object->debug && elf_vaddr(object->debug, offset, vaddr)) ||
			  (object->saved && saved_vaddr(object->saved, offset, vaddr)));
}

bool objects_symbol(struct objects *objects, uint32_t dso, uint64_t vaddr,
		    struct elf_symbol *symbol)
{
	struct object *object = object_open(objects, dso);
	struct saved_function function;

	if (!object)
		return false;
	if ((object->debug && elf_symbol_at(object->debug, vaddr, symbol)) ||
	    (object->elf && elf_symbol_at(object->elf, vaddr, symbol)))
		return true;
	if (!object->saved || !saved_at(object->saved, vaddr, &function) || !*function.name)
		return false;
	*symbol = (struct elf_symbol){function.name, function.vaddr, function.size};
	return true;
}

bool objects_range(struct objects *objects, uint32_t dso, uint64_t vaddr, uint64_t *start,
		   uint64_t *size)
{
	struct object *object = object_open(objects, dso);
	struct saved_function function;

	if (object && object->elf)
		return elf_function_range(object->elf, vaddr, start, size);
	if (!object || !object->saved || !saved_at(object->saved, vaddr, &function))
		return false;
	*start = function.vaddr;
	*size = function.size;
	return true;
}

bool objects_line(struct objects *objects, uint32_t dso, uint64_t vaddr, const char **file,
		  uint32_t *line)
{
	struct object *object = object_open(objects, dso);

	return object && ((object->debug && elf_line(object->debug, vaddr, file, line)) ||
			  (object->elf && elf_line(object->elf, vaddr, file, line)));
}

bool objects_kernel_symbol(struct objects *objects, uint64_t addr, struct elf_symbol *symbol)
{
	const struct saved_object *kernel = saved_find(objects->saved, SAVED_KERNEL, NULL, 0);
	struct saved_function function;

	if (!kernel || !saved_at(kernel, addr, &function))
		return false;
	*symbol = (struct elf_symbol){function.name, function.vaddr, function.size};
	return true;
}

size_t objects_inlined(struct objects *objects, uint32_t dso, uint64_t vaddr,
		       struct elf_inlined *calls, size_t max)
{
	struct object *object = object_open(objects, dso);
	size_t count = 0;

	if (object && object->debug)
		count = elf_inlined(object->debug, vaddr, calls, max);
	if (!count && object && object->elf)
		count = elf_inlined(object->elf, vaddr, calls, max);
	if (!count && object && object->saved)
		count = saved_inlined(object->saved, vaddr, calls, max);
	return count;
}

bool objects_is_eval(struct objects *objects, uint32_t dso, uint64_t vaddr)
{
	struct object *object = object_open(objects, dso);
	struct saved_function function;

	if (!object)
		return false;
	if (object->saved && saved_at(object->saved, vaddr, &function))
		return function.eval;
	if (!object->elf && !object->debug)
		return false;
	if (!object->eval_tried) {
		object->eval_tried = true;
		eval_find(&object->eval, object->elf, object->debug, NULL);
	}
	return eval_covers(&object->eval, vaddr);
}

bool objects_same_host(const struct objects *objects)
{
	return objects->same_host;
}

bool objects_same_kernel(const struct objects *objects)
{
	size_t count = process_dso_count(objects->processes);

	if (!objects->same_release)
		return false;
	for (size_t id = 1; id <= count; id++) {
		const struct dso *dso = process_dso(objects->processes, (uint32_t)id);

		if (dso->kind == DSO_KERNEL && dso->build_id_len && objects->kernel_id_len)
			return dso->build_id_len == objects->kernel_id_len &&
			       !memcmp(dso->build_id, objects->kernel_id, dso->build_id_len);
	}
	return objects->same_host;
}

uint64_t objects_replaced(const struct objects *objects)
{
	return objects->replaced;
}
