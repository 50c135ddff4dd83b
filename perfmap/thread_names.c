#include "perfmap/thread_names.h"

#include "base/strbuf.h"
#include "perfmap/code.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/*
 * threading._active is a dict of the Thread objects, by their idents. The root frame of a thread is
 * threading.Thread._bootstrap, whose globals are the module's dict; from there two dicts and the
 * attributes of an object lead to a name. Objects/dictobject.c and Include/internal/pycore_dict.h
 * have had the same dict since 3.6, with keys of two forms, and attributes in four.
 *
 * Memory is hostile: what is read is bounded, and a name that leads nowhere is none.
 */
#define ENTRIES_MAX 4096 /* of a dict; threading's own has under a hundred */
#define READS_MAX 100000 /* in all: a dozen for each thread, one for each frame */

/* Where an object has its attributes. */
enum attributes {
	DICT_OF_TYPE,	/* a pointer to a dict, where the type says (tp_dictoffset) */
	VALUES_APART,	/* 3.11: before the object a pointer to values, and one to a dict */
	VALUES_OR_DICT, /* 3.12: one of them, which a bit tells apart */
	VALUES_INSIDE,	/* 3.13: a dict's pointer before the object, or values behind it */
};

static const struct version {
	__u8 minor;
	__u8 globals;	   /* of a frame */
	__u16 cached_keys; /* PyHeapTypeObject.ht_cached_keys: the names of values */
	__u8 values;	   /* where they begin in PyDictValues */
	bool long_tag;	   /* ints have their number of digits above three bits of flags */
	enum attributes how;
} versions[] = {
	{6, 48, 0, 0, false, DICT_OF_TYPE},	{7, 48, 0, 0, false, DICT_OF_TYPE},
	{8, 48, 0, 0, false, DICT_OF_TYPE},	{9, 48, 0, 0, false, DICT_OF_TYPE},
	{10, 48, 0, 0, false, DICT_OF_TYPE},	{11, 8, 872, 0, false, VALUES_APART},
	{12, 24, 880, 0, true, VALUES_OR_DICT}, {13, 24, 880, 8, true, VALUES_INSIDE},
};

enum {
	OBJECT_TYPE = 8,
	TYPE_BASICSIZE = 32,
	TYPE_FLAGS = 168,
	TYPE_DICTOFFSET = 288,
	TYPE_HAS_MANAGED_DICT = 1 << 4, /* 3.11+, Py_TPFLAGS_MANAGED_DICT */
	DICT_KEYS = 32,
	DICT_VALUES = 40,
	LONG_SIZE = 16,
	LONG_DIGITS = 24,
	/* 3.11+ */
	BEFORE_DICT = 24, /* 3.12: or values */
	BEFORE_VALUES = 32,
};

struct reader {
	const struct py_process *process;
	const struct memory *memory;
	const struct version *version;
	unsigned int reads_left;
};

static bool read_bytes(struct reader *r, __u64 addr, void *bytes, size_t len)
{
	if (!addr || !r->reads_left)
		return false;
	r->reads_left--;
	return memory_read(r->memory, addr, bytes, len) == 0;
}

static __u64 word(struct reader *r, __u64 addr)
{
	__u64 value;

	return read_bytes(r, addr, &value, sizeof(value)) ? value : 0;
}

/* The frame of a thread that no other called; its entry shims have no globals. */
static __u64 root_frame(struct reader *r, __u64 state)
{
	const struct py_layout *layout = &r->process->layout;
	__u64 frame = word(r, state + layout->tstate_frame), root = 0;
	__u8 owner = 0;

	if (layout->has_cframe)
		frame = word(r, frame + layout->cframe_frame);
	while (frame) {
		if (layout->owner_shim &&
		    !read_bytes(r, frame + layout->frame_owner, &owner, sizeof(owner)))
			return 0;
		if (!layout->owner_shim || owner < layout->owner_shim)
			root = frame;
		frame = word(r, frame + layout->frame_previous);
	}
	return root;
}

/* The entries of a dict, or the attributes of an object, one after another. */
struct items {
	__u64 entries, count, next;
	unsigned int entry_size;
	__u64 values; /* apart from the keys; 0: in the entries */
};

static bool items_of_keys(struct reader *r, __u64 keys, __u64 values, struct items *items)
{
	/* Up to 3.10: refcount, size, lookup, usable, count, then indices of 1, 2 or 4 bytes;
	 * later: refcount, log2 of the size and of the indices' bytes, kind, usable, count. */
	__u64 head[5];
	const __u8 *small = (const __u8 *)&head[1];

	*items = (struct items){.values = values ? values + r->version->values : 0};
	if (!keys || !read_bytes(r, keys, head, sizeof(head)))
		return false;
	if (r->version->minor < 11) {
		items->entries = keys + 40 +
				 head[1] * (head[1] <= 0xff	? 1
					    : head[1] <= 0xffff ? 2
								: 4);
		items->count = head[4];
		items->entry_size = 24;
	} else {
		if (small[1] >= 32)
			return false;
		items->entries = keys + 32 + (UINT64_C(1) << small[1]);
		items->count = head[3];
		items->entry_size = small[2] ? 16 : 24; /* all keys are strings: no hashes */
	}
	return items->count <= ENTRIES_MAX;
}

static bool items_of_dict(struct reader *r, __u64 dict, struct items *items)
{
	return dict &&
	       items_of_keys(r, word(r, dict + DICT_KEYS), word(r, dict + DICT_VALUES), items);
}

static bool items_of_object(struct reader *r, __u64 object, struct items *items)
{
	__u64 type = word(r, object + OBJECT_TYPE), flags = word(r, type + TYPE_FLAGS), at, keys;

	if (!type)
		return false;
	if (r->version->how == DICT_OF_TYPE) {
		at = word(r, type + TYPE_DICTOFFSET);
		return at && at < 1u << 16 && items_of_dict(r, word(r, object + at), items);
	}
	if (!(flags & TYPE_HAS_MANAGED_DICT))
		return false;
	keys = word(r, type + r->version->cached_keys);
	at = word(r, object - BEFORE_DICT);
	switch (r->version->how) {
	case VALUES_APART:
		flags = word(r, object - BEFORE_VALUES);
		return flags ? items_of_keys(r, keys, flags, items) : items_of_dict(r, at, items);
	case VALUES_OR_DICT:
		/* The pointer to values is kept one lower, and so is odd. */
		return at & 1 ? items_of_keys(r, keys, at + 1, items) : items_of_dict(r, at, items);
	default:
		return at ? items_of_dict(r, at, items)
			  : items_of_keys(r, keys, object + word(r, type + TYPE_BASICSIZE), items);
	}
}

/* False at the end. Entries of what was deleted have no value. */
static bool items_next(struct reader *r, struct items *items, __u64 *key, __u64 *value)
{
	while (items->next < items->count) {
		__u64 at = items->next++, entry[3];

		if (!read_bytes(r, items->entries + at * items->entry_size, entry,
				items->entry_size))
			return false;
		*key = entry[items->entry_size / 8 - 2];
		*value = items->values ? word(r, items->values + 8 * at)
				       : entry[items->entry_size / 8 - 1];
		if (*key && *value)
			return true;
	}
	return false;
}

/* The value under a name; 0 where there is none. */
static __u64 item_named(struct reader *r, struct items *items, const char *name)
{
	struct strbuf text = {0};
	__u64 key, value, found = 0;

	while (!found && items_next(r, items, &key, &value)) {
		strbuf_reset(&text);
		if (!py_text_read(r->memory, &r->process->layout, key, &text) &&
		    strcmp(strbuf_text(&text), name) == 0)
			found = value;
	}
	strbuf_fini(&text);
	return found;
}

/* An int of at most three digits of 30 bits, as addresses are. */
static __u64 long_value(struct reader *r, __u64 object)
{
	__u64 count = word(r, object + LONG_SIZE) >> (r->version->long_tag ? 3 : 0), value = 0;
	__u32 digits[3] = {0};

	if (!count || count > 3 ||
	    !read_bytes(r, object + LONG_DIGITS, digits, count * sizeof(digits[0])))
		return 0;
	for (__u64 i = count; i-- > 0;)
		value = value << 30 | digits[i];
	return value;
}

static const struct version *find_version(const struct py_layout *layout)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (layout->major == 3 && layout->minor == versions[i].minor &&
		    !layout->free_threaded)
			return &versions[i];
	return NULL;
}

void py_thread_names(const struct py_process *process, const struct memory *memory, __u64 state,
		     py_thread_name *each, void *ctx)
{
	struct reader r = {process, memory, find_version(&process->layout), READS_MAX};
	struct items globals, threads, attributes;
	struct strbuf name = {0};
	__u64 root, ident, thread, object;

	root = r.version ? root_frame(&r, state) : 0;
	if (!root || !items_of_dict(&r, word(&r, root + r.version->globals), &globals) ||
	    !items_of_dict(&r, item_named(&r, &globals, "_active"), &threads))
		return;
	while (items_next(&r, &threads, &ident, &thread)) {
		object = items_of_object(&r, thread, &attributes)
				 ? item_named(&r, &attributes, "_name")
				 : 0;
		ident = long_value(&r, ident);
		strbuf_reset(&name);
		if (object && ident && !py_text_read(memory, &process->layout, object, &name) &&
		    !strbuf_failed(&name))
			each(ident, strbuf_text(&name), ctx);
	}
	strbuf_fini(&name);
}
