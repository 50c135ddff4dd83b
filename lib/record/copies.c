#include "record/copies.h"

#include "arch/arch.h"
#include "base/log.h"

#include <string.h>

#define RETRY_SHIFT_MAX 10

void copies_init(struct copies *copies, struct pythons *pythons, uint32_t usual, uint32_t most)
{
	struct err why = {0};

	*copies = (struct copies){.pythons = pythons, .arch = arch_host(), .most = most};
	copies->made = pythons_copy_stacks(pythons, usual, most, &why) == 0;
	if (!copies->made)
		log_debug("the kernel copies stacks, all of one size: %s", why.text);
}

void copies_fini(struct copies *copies)
{
	for (size_t i = 0; i < copies->len; i++) {
		vec_fini(&copies->items[i].top.bytes);
		vec_fini(&copies->items[i].interrupted.bytes);
	}
	vec_fini(copies);
	map_fini(&copies->by_thread);
	vec_fini(&copies->threads);
}

/* Whole words were sent; what pads the record is less than one. False when memory runs out. */
static bool keep(struct copied *to, uint64_t sp, const char *bytes, size_t len)
{
	len &= ~(size_t)7;
	to->bytes.len = 0;
	if (!vec_reserve(&to->bytes, len + 1))
		return false;
	memcpy(to->bytes.items, bytes, len);
	to->bytes.len = len;
	to->sp = sp;
	return true;
}

bool copies_take(struct copies *copies, size_t ring, const struct record_sample *record)
{
	struct py_raw_stack head;
	struct copy *copy;
	bool top;

	if (record->raw_len < sizeof(head))
		return false;
	memcpy(&head, record->raw, sizeof(head));
	top = head.magic == PY_RAW_STACK;
	if (!top && head.magic != PY_RAW_INTERRUPTED)
		return false;
	while (copies->len <= ring)
		if (!vec_push(copies))
			return true;
	copy = &copies->items[ring];
	/* The interrupted one comes first; the last one's may be of another signal. */
	if (!copy->paired || copy->thread != head.thread || !head.handler_end)
		copy->interrupted.bytes.len = 0;
	copy->paired = !top;
	copy->thread = head.thread;
	copy->handler_end = head.handler_end;
	copy->tid = 0;
	if (keep(top ? &copy->top : &copy->interrupted, head.sp,
		 (const char *)record->raw + sizeof(head), record->raw_len - sizeof(head)) &&
	    top)
		copy->tid = record->id.tid;
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

/* NULL when memory runs out. */
static struct copies_thread *get_thread(struct copies *copies, uint32_t thread)
{
	uint64_t *index = map_put(&copies->by_thread, thread, NULL);

	if (!index)
		return NULL;
	if (!*index) {
		if (!vec_push(&copies->threads))
			return NULL;
		*index = copies->threads.len;
	}
	return &copies->threads.items[*index - 1];
}

static void tell(struct copies *copies, uint32_t id, struct copies_thread *thread,
		 struct py_stack now)
{
	if (memcmp(&thread->known, &now, sizeof(now)) == 0)
		return;
	thread->known = now;
	pythons_learn_stack(copies->pythons, id, &now);
}

static void set_base(struct copies *copies, uint32_t id, struct copies_thread *thread,
		     uint64_t base)
{
	tell(copies, id, thread, (struct py_stack){base, thread->known.saved_sp});
}

/* Of samples that were taken before the walker was told there may be many. */
static void try_longer(struct copies *copies, uint32_t id, struct copies_thread *thread,
		       const struct copied *copied)
{
	if (copied->bytes.len + sizeof(uint64_t) > copies->most) {
		thread->failed += thread->failed < RETRY_SHIFT_MAX;
		thread->skip = 1u << thread->failed;
		set_base(copies, id, thread, 0);
	} else if (!thread->skip || !--thread->skip) {
		set_base(copies, id, thread, copied->sp + copies->most);
	}
}

/* Where in the handler's stack the kernel saved the stack pointer that the stack goes on with
 * elsewhere: at the last frame that a signal interrupted. */
static uint64_t find_saved(const struct copies *copies, const struct copy *copy,
			   const struct unwind_stack *stack)
{
	const struct arch_sigreturn *sigreturn = copies->arch->sigreturn;
	size_t i = stack->count - 1;
	uint64_t saved, sp;

	while (i && !stack->frames[i].exact)
		i--;
	if (!i || !sigreturn || copy->top.bytes.len < sizeof(sp))
		return 0;
	saved = stack->frames[i - 1].sp + (uint64_t)sigreturn->saved[copies->arch->dwarf_sp];
	if (saved - copy->top.sp > copy->top.bytes.len - sizeof(sp))
		return 0;
	memcpy(&sp, copy->top.bytes.items + (saved - copy->top.sp), sizeof(sp));
	return sp == stack->frames[i].sp ? saved : 0;
}

void copies_learn(struct copies *copies, const struct copy *copy, const struct unwind_stack *stack)
{
	const struct unwind_frame *last = &stack->frames[stack->count - 1];
	const struct copied *outer = copy->interrupted.bytes.len ? &copy->interrupted : &copy->top;
	struct copies_thread *thread = get_thread(copies, copy->thread);

	if (!thread)
		return;
	if (stack->end == UNWIND_COMPLETE) {
		set_base(copies, copy->thread, thread, last->cfa > last->sp ? last->cfa : last->sp);
		thread->failed = thread->skip = 0;
	} else if (stack->end == UNWIND_OTHER_STACK) {
		if (copy->handler_end)
			tell(copies, copy->thread, thread,
			     (struct py_stack){thread->known.base,
					       find_saved(copies, copy, stack)});
	} else if ((stack->end == UNWIND_TRUNCATED || !copy->top.bytes.len) &&
		   (!copy->handler_end || outer == &copy->interrupted)) {
		try_longer(copies, copy->thread, thread, outer);
	}
}
