#include "perfmap/kernel_types.h"

/* Only the bpf engine asks; without libbpf there is nothing to write a description with. */
#ifdef HAVE_BPF

#include "base/io.h"
#include "base/map.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Types lie one after the other, each with a length that its kind tells, and are known by their
 * number. One look over all finds where each is, and those that have a wanted name; these are then
 * written with libbpf, and before each of them what its members are made of.
 */

#define DEPTH_MAX 16 /* of structures within structures */
#define STRIDE 16 /* a kernel has 100,000 types: the place of each would fill pages for nothing */

struct member {
	const char *name;
	uint32_t type; /* in the new description */
	uint32_t offset, bits;
};

struct picker {
	const unsigned char *types;
	size_t types_len;
	const char *strings;
	size_t strings_len;
	const struct kernel_type_names *names;
	bool beginnings[1 << 12]; /* of the names, by beginning_of() */
	struct btf *out;
	struct map made; /* number there -> number in `out`; 0 while it is made */
	uint32_t pointer;
	struct {
		VEC_OF(uint32_t)
	} places;	/* in `types`, of type 1, 1 + STRIDE, 1 + 2 * STRIDE, ... */
	uint32_t count; /* of types */
	struct {
		VEC_OF(uint32_t)
	} wanted;
};

static int malformed(struct err *err)
{
	return err_set(err, ERR_CORRUPT, "the kernel's description of its types is malformed");
}

static unsigned int kind_of(const struct btf_type *type)
{
	return BTF_INFO_KIND(type->info);
}

static unsigned int count_of(const struct btf_type *type)
{
	return BTF_INFO_VLEN(type->info);
}

/* What lies behind the head of a type: bytes, or bytes for each that is counted there. */
static const struct {
	uint8_t known, once, each;
} tails[] = {
	[BTF_KIND_INT] = {1, sizeof(uint32_t), 0},
	[BTF_KIND_PTR] = {1, 0, 0},
	[BTF_KIND_ARRAY] = {1, sizeof(struct btf_array), 0},
	[BTF_KIND_STRUCT] = {1, 0, sizeof(struct btf_member)},
	[BTF_KIND_UNION] = {1, 0, sizeof(struct btf_member)},
	[BTF_KIND_ENUM] = {1, 0, sizeof(struct btf_enum)},
	[BTF_KIND_FWD] = {1, 0, 0},
	[BTF_KIND_TYPEDEF] = {1, 0, 0},
	[BTF_KIND_VOLATILE] = {1, 0, 0},
	[BTF_KIND_CONST] = {1, 0, 0},
	[BTF_KIND_RESTRICT] = {1, 0, 0},
	[BTF_KIND_FUNC] = {1, 0, 0},
	[BTF_KIND_FUNC_PROTO] = {1, 0, sizeof(struct btf_param)},
	[BTF_KIND_VAR] = {1, sizeof(uint32_t), 0},
	[BTF_KIND_DATASEC] = {1, 0, sizeof(struct btf_var_secinfo)},
	[BTF_KIND_FLOAT] = {1, 0, 0},
	[BTF_KIND_DECL_TAG] = {1, sizeof(uint32_t), 0},
	[BTF_KIND_TYPE_TAG] = {1, 0, 0},
	[BTF_KIND_ENUM64] = {1, 0, sizeof(struct btf_enum64)},
};

/* Bytes behind the head of a type; SIZE_MAX for a kind that is not known. */
static inline size_t tail_of(const struct btf_type *type)
{
	unsigned int kind = kind_of(type);

	if (kind >= sizeof(tails) / sizeof(tails[0]) || !tails[kind].known)
		return SIZE_MAX;
	return tails[kind].once + (size_t)tails[kind].each * count_of(type);
}

/* "" for none, and for one that lies outside of the strings. */
static const char *string_at(const struct picker *picker, uint32_t offset)
{
	return offset < picker->strings_len ? picker->strings + offset : "";
}

/* Few names begin with the same two letters; not for "". */
static unsigned int beginning_of(const char *name)
{
	return ((unsigned char)name[0] & 63u) << 6 | ((unsigned char)name[1] & 63u);
}

static bool is_wanted(const struct picker *picker, const struct btf_type *type)
{
	const char *name = string_at(picker, type->name_off);
	unsigned int kind = kind_of(type);

	if ((kind != BTF_KIND_STRUCT && kind != BTF_KIND_UNION && kind != BTF_KIND_ENUM &&
	     kind != BTF_KIND_ENUM64) ||
	    !*name || !picker->beginnings[beginning_of(name)])
		return false;
	for (size_t i = 0; i < picker->names->len; i++)
		if (strcmp(picker->names->items[i], name) == 0)
			return true;
	return false;
}

static int find_types(struct picker *picker, struct err *err)
{
	size_t at = 0;

	while (picker->types_len - at >= sizeof(struct btf_type)) {
		const struct btf_type *type = (const void *)(picker->types + at);
		size_t left = picker->types_len - at - sizeof(*type), tail = tail_of(type);
		uint32_t *place, *wanted;

		if (picker->count++ % STRIDE == 0) {
			place = vec_push(&picker->places);
			if (!place)
				return err_nomem(err);
			*place = (uint32_t)at;
		}
		if (tail > left)
			return malformed(err);
		if (is_wanted(picker, type)) {
			wanted = vec_push(&picker->wanted);
			if (!wanted)
				return err_nomem(err);
			*wanted = picker->count;
		}
		at += sizeof(*type) + tail;
	}
	return 0;
}

/* NULL for void, and for a number that is none. */
static const struct btf_type *type_at(const struct picker *picker, uint32_t number)
{
	const unsigned char *at = picker->types;

	if (!number || number > picker->count)
		return NULL;
	at += picker->places.items[(number - 1) / STRIDE];
	for (uint32_t i = (number - 1) % STRIDE; i; i--)
		at += sizeof(struct btf_type) + tail_of((const void *)at);
	return (const void *)at;
}

/* Behind typedefs and qualifiers. */
static const struct btf_type *plain_type(const struct picker *picker, uint32_t *number)
{
	const struct btf_type *type = type_at(picker, *number);

	for (int depth = 0; type && depth < DEPTH_MAX; depth++) {
		switch (kind_of(type)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG:
			*number = type->type;
			type = type_at(picker, *number);
			continue;
		}
		return type;
	}
	return NULL;
}

static int make(struct picker *picker, uint32_t number, int depth);

static int make_int(struct picker *picker, const struct btf_type *type)
{
	uint32_t bits = *(const uint32_t *)(type + 1);

	return btf__add_int(picker->out, string_at(picker, type->name_off), type->size,
			    (int)BTF_INT_ENCODING(bits));
}

static int make_pointer(struct picker *picker)
{
	int number = picker->pointer ? (int)picker->pointer : btf__add_ptr(picker->out, 0);

	if (number > 0)
		picker->pointer = (uint32_t)number;
	return number;
}

static int make_array(struct picker *picker, const struct btf_type *type, int depth)
{
	const struct btf_array *array = (const void *)(type + 1);
	int element = make(picker, array->type, depth),
	    index = make(picker, array->index_type, depth);

	if (element < 0 || index < 0)
		return element < 0 ? element : index;
	return btf__add_array(picker->out, index, element, array->nelems);
}

static int make_enum(struct picker *picker, const struct btf_type *type)
{
	bool large = kind_of(type) == BTF_KIND_ENUM64, is_signed = BTF_INFO_KFLAG(type->info);
	const char *name = string_at(picker, type->name_off);
	const struct btf_enum *small = (const void *)(type + 1);
	const struct btf_enum64 *wide = (const void *)(type + 1);
	int number = large ? btf__add_enum64(picker->out, name, type->size, is_signed)
			   : btf__add_enum(picker->out, name, type->size);
	int ret = number;

	for (unsigned int i = 0; ret >= 0 && i < count_of(type) && is_wanted(picker, type); i++)
		ret = large ? btf__add_enum64_value(
				      picker->out, string_at(picker, wide[i].name_off),
				      (uint64_t)wide[i].val_hi32 << 32 | wide[i].val_lo32)
			    : btf__add_enum_value(picker->out, string_at(picker, small[i].name_off),
						  small[i].val);
	return ret < 0 ? ret : number;
}

static int make_struct(struct picker *picker, const struct btf_type *type, int depth)
{
	const struct btf_member *members = (const void *)(type + 1);
	const char *name = string_at(picker, type->name_off);
	unsigned int count = !*name || is_wanted(picker, type) ? count_of(type) : 0, kept = 0;
	struct member *made = calloc(count + 1, sizeof(*made));
	int number = made ? 0 : -ENOMEM, ret;

	for (unsigned int i = 0; number >= 0 && i < count; i++) {
		uint32_t offset = members[i].offset;
		bool fields = BTF_INFO_KFLAG(type->info);

		ret = make(picker, members[i].type, depth + 1);
		if (ret == -ENOMEM)
			number = ret;
		if (ret < 0) /* of no kind that is asked for */
			continue;
		made[kept++] = (struct member){
			.name = string_at(picker, members[i].name_off),
			.type = (uint32_t)ret,
			.offset = fields ? BTF_MEMBER_BIT_OFFSET(offset) : offset,
			.bits = fields ? BTF_MEMBER_BITFIELD_SIZE(offset) : 0,
		};
	}
	if (number >= 0)
		number = kind_of(type) == BTF_KIND_STRUCT
				 ? btf__add_struct(picker->out, name, type->size)
				 : btf__add_union(picker->out, name, type->size);
	for (unsigned int i = 0; number >= 0 && i < kept; i++) {
		ret = btf__add_field(picker->out, made[i].name, (int)made[i].type, made[i].offset,
				     made[i].bits);
		if (ret < 0)
			number = ret;
	}
	free(made);
	return number;
}

/* The number of a type in the new description, or a negative errno. */
static int make(struct picker *picker, uint32_t number, int depth)
{
	const struct btf_type *type = plain_type(picker, &number);
	uint64_t *made;
	bool added;
	int ret;

	if (!type || depth > DEPTH_MAX)
		return -EINVAL;
	made = map_put(&picker->made, number, &added);
	if (!made)
		return -ENOMEM;
	if (!added)
		return *made ? (int)*made : -EINVAL;
	switch (kind_of(type)) {
	case BTF_KIND_INT:
		ret = make_int(picker, type);
		break;
	case BTF_KIND_FLOAT:
		ret = btf__add_float(picker->out, string_at(picker, type->name_off), type->size);
		break;
	case BTF_KIND_PTR:
		ret = make_pointer(picker);
		break;
	case BTF_KIND_ARRAY:
		ret = make_array(picker, type, depth + 1);
		break;
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		ret = make_enum(picker, type);
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		ret = make_struct(picker, type, depth);
		break;
	default:
		ret = -EINVAL;
	}
	if (ret < 0)
		return ret;
	made = map_put(&picker->made, number, NULL); /* it may have moved */
	if (made)
		*made = (uint64_t)ret;
	return ret;
}

/* Finds the parts of a description; the strings end with a NUL. */
static bool open_parts(struct picker *picker, const unsigned char *all, size_t len)
{
	struct btf_header header;
	size_t begin;

	if (len < sizeof(header))
		return false;
	memcpy(&header, all, sizeof(header));
	begin = header.hdr_len;
	if (header.magic != BTF_MAGIC || begin < sizeof(header) || begin > len ||
	    header.type_off > len - begin || header.type_len > len - begin - header.type_off ||
	    header.str_off > len - begin || header.str_len > len - begin - header.str_off ||
	    !header.str_len || (begin | header.type_off) % sizeof(uint32_t))
		return false;
	picker->types = all + begin + header.type_off;
	picker->types_len = header.type_len;
	picker->strings = (const char *)all + begin + header.str_off;
	picker->strings_len = header.str_len;
	return !picker->strings[picker->strings_len - 1];
}

static int pick(struct picker *picker, struct strbuf *out, struct err *err)
{
	const void *raw;
	uint32_t size;
	int ret = find_types(picker, err);

	if (ret)
		return ret;
	for (size_t i = 0; i < picker->wanted.len; i++)
		if (make(picker, picker->wanted.items[i], 0) == -ENOMEM)
			return err_nomem(err);
	raw = btf__raw_data(picker->out, &size);
	if (!raw)
		return err_nomem(err);
	strbuf_add(out, raw, size);
	return strbuf_failed(out) ? err_nomem(err) : 0;
}

int kernel_types_pick(const void *all, size_t len, const struct kernel_type_names *names,
		      struct strbuf *out, struct err *err)
{
	struct picker picker = {.names = names};
	int ret;

	if (!open_parts(&picker, all, len))
		return malformed(err);
	for (size_t i = 0; i < names->len; i++)
		picker.beginnings[beginning_of(names->items[i])] = true;
	picker.out = btf__new_empty();
	ret = picker.out ? pick(&picker, out, err) : err_nomem(err);
	btf__free(picker.out);
	map_fini(&picker.made);
	vec_fini(&picker.places);
	vec_fini(&picker.wanted);
	return ret;
}

int kernel_types_read(const struct kernel_type_names *names, struct strbuf *out, struct err *err)
{
	int fd = open(KERNEL_TYPES_PATH, O_RDONLY | O_CLOEXEC), ret;
	struct stat st;
	size_t len;
	void *all;

	if (fd < 0 || fstat(fd, &st) < 0) {
		ret = err_sys(err, errno, "cannot read %s", KERNEL_TYPES_PATH);
		if (fd >= 0)
			close(fd);
		return ret;
	}
	len = (size_t)st.st_size;
	/* The file itself can be mapped from Linux 6.16 on. */
	all = mmap(NULL, len, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (all == MAP_FAILED) {
		all = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (all != MAP_FAILED && io_read_full(fd, all, len) != (ssize_t)len)
			memset(all, 0, sizeof(struct btf_header));
	}
	close(fd);
	if (all == MAP_FAILED)
		return err_sys(err, errno, "cannot read %s", KERNEL_TYPES_PATH);
	ret = kernel_types_pick(all, len, names, out, err);
	munmap(all, len);
	return ret;
}

#endif
