#include "perfmap/kernel_types.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef HAVE_BPF

#include <bpf/btf.h>

static void name(struct kernel_type_names *names, const char *text)
{
	const char **slot = vec_push(names);

	assert_non_null(slot);
	*slot = text;
}

/* What is picked of a description, as libbpf reads it; NULL where it is refused. */
static struct btf *picked(const void *all, size_t len, const struct kernel_type_names *names)
{
	struct strbuf out = {0};
	struct err err = {0};
	struct btf *btf = NULL;

	if (kernel_types_pick(all, len, names, &out, &err) == 0) {
		btf = btf__new(out.buf, (uint32_t)out.len);
		assert_non_null(btf);
	} else {
		assert_int_equal(err.code, ERR_CORRUPT);
	}
	strbuf_fini(&out);
	return btf;
}

static const struct btf_type *find(const struct btf *btf, const char *text, unsigned int kind)
{
	int number = btf__find_by_name_kind(btf, text, kind);

	return number > 0 ? btf__type_by_id(btf, (uint32_t)number) : NULL;
}

static const struct btf_type *plain(const struct btf *btf, uint32_t number)
{
	const struct btf_type *type = btf__type_by_id(btf, number);

	while (btf_is_mod(type) || btf_is_typedef(type))
		type = btf__type_by_id(btf, type->type);
	return type;
}

/* A member's place in bits, also within members without a name; -1: there is none. */
static long place(const struct btf *btf, const struct btf_type *type, const char *text,
		  const struct btf_type **member)
{
	const struct btf_member *members = btf_members(type);

	for (unsigned int i = 0; i < btf_vlen(type); i++) {
		const char *own = btf__name_by_offset(btf, members[i].name_off);
		long within;

		*member = plain(btf, members[i].type);
		if (strcmp(own, text) == 0)
			return btf_member_bit_offset(type, i);
		if (*own || !btf_is_composite(*member))
			continue;
		within = place(btf, *member, text, member);
		if (within >= 0)
			return (long)btf_member_bit_offset(type, i) + within;
	}
	return -1;
}

static void as_libbpf_reads_the_kernel(void **state)
{
	static const struct {
		const char *type, *member;
	} members[] = {
		{"task_struct", "pid"},
		{"task_struct", "tgid"},
		{"task_struct", "thread"},
		{"task_struct", "group_leader"},
		{"task_struct", "mm"},
		{"mm_struct", "start_stack"},
		{"pid", "level"},
		{"pid", "numbers"},
		{"upid", "ns"},
		{"signal_struct", "live"},
		{"pid_namespace", "ns"},
		{"ns_common", "inum"},
	};
	struct kernel_type_names names = {0};
	const struct btf_type *ours, *theirs, *our_member, *their_member;
	struct strbuf out = {0};
	struct err err = {0};
	struct btf *all, *few;

	if (access(KERNEL_TYPES_PATH, R_OK) != 0)
		skip();
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		name(&names, members[i].type);
	name(&names, "bpf_func_id");
	assert_int_equal(kernel_types_read(&names, &out, &err), 0);
	assert_true(out.len < 100000);
	few = btf__new(out.buf, (uint32_t)out.len);
	all = btf__load_vmlinux_btf();
	assert_non_null(few);
	assert_non_null(all);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		ours = find(few, members[i].type, BTF_KIND_STRUCT);
		theirs = find(all, members[i].type, BTF_KIND_STRUCT);
		assert_non_null(ours);
		assert_int_equal(ours->size, theirs->size);
		assert_int_equal(place(few, ours, members[i].member, &our_member),
				 place(all, theirs, members[i].member, &their_member));
		assert_int_equal(btf_kind(our_member), btf_kind(their_member));
	}
	ours = find(few, "bpf_func_id", BTF_KIND_ENUM);
	theirs = find(all, "bpf_func_id", BTF_KIND_ENUM);
	assert_int_equal(btf_vlen(ours), btf_vlen(theirs));
	assert_memory_equal(&btf_enum(ours)[1].val, &btf_enum(theirs)[1].val, sizeof(uint32_t));
	btf__free(few);
	btf__free(all);
	strbuf_fini(&out);
	vec_fini(&names);
}

/* struct node { int bits : 3; struct { union { long deep; }; }; counter_t count; struct node *next;
 *   struct other by_value; struct node row[4]; enum small { ONE = 1 } small; };
 * and what nobody asks for. A structure within itself is what only a broken description has. */
static struct btf *synthetic(void)
{
	struct btf *btf = btf__new_empty();
	int number = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	int wide = btf__add_int(btf, "long", 8, BTF_INT_SIGNED);
	int inner, outer, counter, other, pointer, node;

	inner = btf__add_union(btf, "", 8);
	btf__add_field(btf, "deep", wide, 0, 0);
	outer = btf__add_struct(btf, "", 8);
	btf__add_field(btf, "", inner, 0, 0);
	counter = btf__add_struct(btf, "", 4);
	btf__add_field(btf, "value", number, 0, 0);
	counter = btf__add_typedef(btf, "counter_t", counter);
	counter = btf__add_const(btf, counter);
	other = btf__add_struct(btf, "other", 4);
	btf__add_field(btf, "hidden", number, 0, 0);
	pointer = btf__add_ptr(btf, other + 2);
	node = btf__add_struct(btf, "node", 48);
	assert_int_equal(node, other + 2);
	btf__add_field(btf, "bits", number, 5, 3);
	btf__add_field(btf, "", outer, 64, 0);
	btf__add_field(btf, "count", counter, 128, 0);
	btf__add_field(btf, "next", pointer, 192, 0);
	btf__add_field(btf, "by_value", other, 256, 0);
	btf__add_field(btf, "row", node + 1, 288, 0);
	btf__add_field(btf, "small", node + 2, 320, 0);
	btf__add_array(btf, number, node, 4);
	btf__add_enum(btf, "small", 4);
	btf__add_enum_value(btf, "ONE", 1);
	btf__add_func_proto(btf, number);
	btf__add_func_param(btf, "unused", pointer);
	btf__add_func(btf, "function", BTF_FUNC_STATIC, node + 3);
	btf__add_enum64(btf, "large", 8, true);
	btf__add_enum64_value(btf, "FAR", 1ull << 40);
	btf__add_float(btf, "double", 8);
	btf__add_fwd(btf, "elsewhere", BTF_FWD_STRUCT);
	return btf;
}

static void members_of_every_kind(void **state)
{
	struct btf *all = synthetic(), *few;
	struct kernel_type_names names = {0};
	const struct btf_type *node, *member;
	uint32_t len;
	const void *raw = btf__raw_data(all, &len);

	name(&names, "node");
	name(&names, "large");
	name(&names, "nothing");
	few = picked(raw, len, &names);
	assert_non_null(few);
	node = find(few, "node", BTF_KIND_STRUCT);
	assert_non_null(node);
	assert_int_equal(node->size, 48);
	assert_int_equal(place(few, node, "bits", &member), 5);
	assert_int_equal(btf_member_bitfield_size(node, 0), 3);
	assert_int_equal(place(few, node, "deep", &member), 64);
	assert_int_equal(place(few, node, "count", &member), 128);
	assert_int_equal(place(few, member, "value", &member), 0);
	assert_int_equal(place(few, node, "next", &member), 192);
	assert_true(btf_is_ptr(member));
	assert_int_equal(place(few, node, "by_value", &member), 256);
	assert_int_equal(btf_vlen(member), 0);
	/* A row of itself cannot be. */
	assert_int_equal(place(few, node, "row", &member), -1);
	assert_int_equal(place(few, node, "small", &member), 320);
	assert_true(btf_is_enum(member));
	assert_non_null(find(few, "large", BTF_KIND_ENUM64));
	assert_null(find(few, "function", BTF_KIND_FUNC));
	btf__free(few);
	btf__free(all);
	vec_fini(&names);
}

static void damaged_descriptions(void **state)
{
	struct btf *all = synthetic();
	struct kernel_type_names names = {0};
	uint32_t len;
	const void *raw = btf__raw_data(all, &len);
	unsigned char *copy = malloc(len);

	assert_non_null(copy);
	name(&names, "node");
	name(&names, "large");
	for (uint32_t cut = 0; cut < len; cut++) {
		memcpy(copy, raw, len);
		assert_null(picked(copy, cut, &names));
	}
	for (uint32_t at = 0; at < 8 * len; at++) {
		struct strbuf out = {0};

		memcpy(copy, raw, len);
		copy[at / 8] ^= (unsigned char)(1 << at % 8);
		/* Refused, or something else: never worse. */
		(void)kernel_types_pick(copy, len, &names, &out, NULL);
		strbuf_fini(&out);
	}
	free(copy);
	btf__free(all);
	vec_fini(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_libbpf_reads_the_kernel),
		cmocka_unit_test(members_of_every_kind),
		cmocka_unit_test(damaged_descriptions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 0;
}

#endif
