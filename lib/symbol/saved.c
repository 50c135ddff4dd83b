#include "symbol/saved.h"

#include "base/arena.h"
#include "base/partition.h"
#include "base/vec.h"
#include "symbol/elf_file.h"
#include "symbol/saved_inlines.h"

#include <stdlib.h>
#include <string.h>

#define SECTION_VERSION 2u
#define VERSION_WITHOUT_INLINES 1u
#define FUNCTION_EVAL 1u
#define NESTED_MAX 16u /* functions that begin between another and an address in it */

struct segment {
	uint64_t vaddr, offset, size;
};

struct saved_object {
	const char *path;
	uint8_t build_id[ELF_BUILD_ID_MAX];
	uint32_t build_id_len;
	struct {
		VEC_OF(struct segment)
	} segments;
	struct {
		VEC_OF(struct saved_function)
	} functions; /* by vaddr */
	struct saved_inlines inlines;
};

struct saved {
	struct arena names;
	struct {
		VEC_OF(struct saved_object)
	} objects;
};

void saved_begin(struct strbuf *section)
{
	strbuf_u32(section, SECTION_VERSION);
}

void saved_add(struct strbuf *section, const struct saved_file *file,
	       const struct saved_function *functions, uint32_t count,
	       const struct saved_inlines *inlines)
{
	static const struct saved_inlines none;

	strbuf_blob(section, file->path, strlen(file->path));
	strbuf_blob(section, file->build_id, file->build_id_len);
	strbuf_u32(section, file->elf ? (uint32_t)file->elf->load_count : 0);
	for (size_t i = 0; file->elf && i < file->elf->load_count; i++) {
		strbuf_u64(section, file->elf->loads[i].vaddr);
		strbuf_u64(section, file->elf->loads[i].offset);
		strbuf_u64(section, file->elf->loads[i].file_size);
	}
	strbuf_u32(section, count);
	for (uint32_t i = 0; i < count; i++) {
		strbuf_u64(section, functions[i].vaddr);
		strbuf_u64(section, functions[i].size);
		strbuf_u8(section, functions[i].eval ? FUNCTION_EVAL : 0);
		strbuf_blob(section, functions[i].name, strlen(functions[i].name));
	}
	saved_inlines_encode(inlines ? inlines : &none, section);
}

static int by_vaddr(const void *a, const void *b)
{
	const struct saved_function *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->size < y->size ? -1 : x->size > y->size;
}

static int decode_segments(struct saved_object *object, struct bytes *section, struct err *err)
{
	uint32_t count = bytes_u32(section);

	for (uint32_t i = 0; i < count && !section->bad; i++) {
		struct segment *segment = vec_push(&object->segments);

		if (!segment)
			return err_nomem(err);
		segment->vaddr = bytes_u64(section);
		segment->offset = bytes_u64(section);
		segment->size = bytes_u64(section);
	}
	return 0;
}

static int decode_functions(struct saved *saved, struct saved_object *object, struct bytes *section,
			    struct err *err)
{
	uint32_t count = bytes_u32(section);

	for (uint32_t i = 0; i < count && !section->bad; i++) {
		struct saved_function function = {0}, *slot;
		struct bytes name;

		function.vaddr = bytes_u64(section);
		function.size = bytes_u64(section);
		function.eval = bytes_u8(section) & FUNCTION_EVAL;
		name = bytes_blob(section);
		if (section->bad)
			break;
		function.name = arena_strndup(&saved->names, (const char *)name.at,
					      bytes_left(&name));
		slot = function.name ? vec_push(&object->functions) : NULL;
		if (!slot)
			return err_nomem(err);
		*slot = function;
	}
	if (object->functions.len)
		qsort(object->functions.items, object->functions.len,
		      sizeof(*object->functions.items), by_vaddr);
	return 0;
}

static int decode_object(struct saved *saved, struct bytes *section, uint32_t version,
			 struct err *err)
{
	struct saved_object *object = vec_push(&saved->objects);
	struct bytes path = bytes_blob(section), id = bytes_blob(section);
	int ret;

	if (!object)
		return err_nomem(err);
	saved_inlines_init(&object->inlines);
	object->path = arena_strndup(&saved->names, (const char *)path.at, bytes_left(&path));
	if (!object->path)
		return err_nomem(err);
	if (bytes_left(&id) > sizeof(object->build_id))
		section->bad = true;
	else if (bytes_left(&id))
		memcpy(object->build_id, id.at, bytes_left(&id));
	object->build_id_len = section->bad ? 0 : (uint32_t)bytes_left(&id);
	ret = decode_segments(object, section, err);
	if (!ret)
		ret = decode_functions(saved, object, section, err);
	if (!ret && version != VERSION_WITHOUT_INLINES)
		ret = saved_inlines_decode(&object->inlines, section, err);
	return ret;
}

int saved_decode(struct saved **out, struct bytes section, struct err *err)
{
	struct saved *saved = calloc(1, sizeof(*saved));
	uint32_t version = bytes_u32(&section);
	int ret = 0;

	*out = saved;
	if (!saved)
		return err_nomem(err);
	arena_init(&saved->names);
	if (section.bad)
		return err_set(err, ERR_CORRUPT, "the recorded symbols are cut short");
	if (version != SECTION_VERSION && version != VERSION_WITHOUT_INLINES)
		return err_set(err, ERR_UNSUPPORTED, "the recorded symbols are of version %u",
			       version);
	while (!ret && bytes_left(&section))
		ret = decode_object(saved, &section, version, err);
	if (!ret && section.bad)
		ret = err_set(err, ERR_CORRUPT, "the recorded symbols are cut short");
	return ret;
}

void saved_free(struct saved *saved)
{
	if (!saved)
		return;
	for (size_t i = 0; i < saved->objects.len; i++) {
		vec_fini(&saved->objects.items[i].segments);
		vec_fini(&saved->objects.items[i].functions);
		saved_inlines_fini(&saved->objects.items[i].inlines);
	}
	vec_fini(&saved->objects);
	arena_fini(&saved->names);
	free(saved);
}

const struct saved_object *saved_find(const struct saved *saved, const char *path,
				      const uint8_t *build_id, uint32_t build_id_len)
{
	for (size_t i = 0; saved && i < saved->objects.len; i++) {
		const struct saved_object *object = &saved->objects.items[i];

		if (object->build_id_len == build_id_len &&
		    (build_id_len ? !memcmp(object->build_id, build_id, build_id_len)
				  : !strcmp(object->path, path)))
			return object;
	}
	return NULL;
}

bool saved_vaddr(const struct saved_object *object, uint64_t offset, uint64_t *vaddr)
{
	for (size_t i = 0; i < object->segments.len; i++) {
		const struct segment *segment = &object->segments.items[i];

		if (offset >= segment->offset && offset - segment->offset < segment->size) {
			*vaddr = segment->vaddr + (offset - segment->offset);
			return true;
		}
	}
	return false;
}

bool saved_at(const struct saved_object *object, uint64_t vaddr, struct saved_function *function)
{
	size_t at = partition_point(object->functions.items, object->functions.len, before,
				    before->vaddr <= vaddr);
	/* Functions may lie within others: the innermost that reaches so far. */
	size_t stop = at > NESTED_MAX ? at - NESTED_MAX : 0;

	while (at-- > stop) {
		const struct saved_function *candidate = &object->functions.items[at];

		if (vaddr - candidate->vaddr < candidate->size) {
			*function = *candidate;
			return true;
		}
	}
	return false;
}

size_t saved_inlined(const struct saved_object *object, uint64_t vaddr, struct elf_inlined *calls,
		     size_t max)
{
	return saved_inlines_at(&object->inlines, vaddr, calls, max);
}
