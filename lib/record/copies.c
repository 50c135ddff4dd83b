#include "record/copies.h"

#include "base/log.h"
#include "perfmap/frames.h"

#include <string.h>

#define RETRY_SHIFT_MAX 10

void copies_init(struct copies *copies, struct pythons *pythons, uint32_t usual, uint32_t most)
{
	struct err why = {0};

	*copies = (struct copies){.pythons = pythons, .most = most};
	copies->made = pythons_copy_stacks(pythons, usual, most, &why) == 0;
	if (!copies->made)
		log_debug("the kernel copies stacks, all of one size: %s", why.text);
}

void copies_fini(struct copies *copies)
{
	for (size_t i = 0; i < copies->len; i++)
		vec_fini(&copies->items[i].bytes);
	vec_fini(copies);
	map_fini(&copies->bases);
	map_fini(&copies->retry_of);
	vec_fini(&copies->retries);
}

bool copies_take(struct copies *copies, size_t ring, const struct record_sample *record)
{
	struct py_raw_stack head;
	struct copy *copy;
	size_t len;

	if (record->raw_len < sizeof(head))
		return false;
	memcpy(&head, record->raw, sizeof(head));
	if (head.magic != PY_RAW_STACK)
		return false;
	while (copies->len <= ring)
		if (!vec_push(copies))
			return true;
	copy = &copies->items[ring];
	copy->tid = 0;
	/* Whole words were sent; what pads the record is less than one. */
	len = (record->raw_len - sizeof(head)) & ~(size_t)7;
	if (!vec_reserve(&copy->bytes, len + 1))
		return true;
	if (len)
		memcpy(copy->bytes.items, (const char *)record->raw + sizeof(head), len);
	copy->bytes.len = len;
	copy->tid = record->id.tid;
	copy->thread = head.thread;
	copy->sp = head.sp;
	return true;
}

const struct copy *copies_of(struct copies *copies, size_t ring, const struct record_sample *sample)
{
	struct copy *copy = ring < copies->len ? &copies->items[ring] : NULL;

	if (!copy || !copy->tid || copy->tid != sample->id.tid)
		return NULL;
	copy->tid = 0;
	return copy;
}

static void set_base(struct copies *copies, uint32_t thread, uint64_t base)
{
	uint64_t *known = map_put(&copies->bases, thread, NULL);

	if (!known || *known == base)
		return;
	*known = base;
	pythons_stack_base(copies->pythons, thread, base);
}

/* Of samples that were taken before the walker was told there may be many. */
static void try_longer(struct copies *copies, const struct copy *copy)
{
	uint64_t *index = map_put(&copies->retry_of, copy->thread, NULL);
	struct copies_retry *retry;

	if (!index)
		return;
	if (!*index) {
		if (!vec_push(&copies->retries))
			return;
		*index = copies->retries.len;
	}
	retry = &copies->retries.items[*index - 1];
	if (copy->bytes.len + sizeof(uint64_t) > copies->most) {
		retry->failed += retry->failed < RETRY_SHIFT_MAX;
		retry->skip = 1u << retry->failed;
		set_base(copies, copy->thread, 0);
	} else if (!retry->skip || !--retry->skip) {
		set_base(copies, copy->thread, copy->sp + copies->most);
	}
}

void copies_learn(struct copies *copies, const struct copy *copy, const struct unwind_stack *stack)
{
	const struct unwind_frame *last = &stack->frames[stack->count - 1];
	uint64_t *retry;

	if (stack->end == UNWIND_TRUNCATED || !copy->bytes.len) {
		try_longer(copies, copy);
	} else if (stack->end == UNWIND_COMPLETE) {
		set_base(copies, copy->thread, last->cfa > last->sp ? last->cfa : last->sp);
		retry = map_get(&copies->retry_of, copy->thread);
		if (retry && *retry)
			copies->retries.items[*retry - 1] = (struct copies_retry){0};
	}
}
