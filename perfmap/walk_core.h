#ifndef PYPERF_WALK_CORE_H
#define PYPERF_WALK_CORE_H

#include "perfmap/frames.h"
#include "perfmap/layout.h"
#include "perfmap/walk_limits.h"

/*
 * The interpreter walker: one source, built for BPF (walker.bpf.c) and for memory that is read by
 * a callback (walk.c). The includer defines
 *
 *      WALK_READ(walk, dst, len, addr)    0 when all bytes were read
 *      __always_inline                    where no header does
 *
 * and calls walk_begin(), then walk_step() until it returns false. Memory is never trusted: every
 * index into what was read is masked to the scratch buffers, so no layout and no target can lead
 * outside of them, and the caller bounds the steps.
 *
 * What CPython promises, and what is made of it:
 *
 *  - Up to 3.10: f_lasti is the instruction that was started last, -1 where none was, which counts
 *    as the first; in bytes, in 3.10 in units. Every frame is run by a call of the eval loop.
 *  - 3.11, 3.12: prev_instr is the instruction that was started last (in a caller: the last unit
 *    of its call, caches included); one unit before the code where none was started yet. 3.13+:
 * instr_ptr is the instruction itself. Both lie in the range that co_lines() gives the executing
 * line (Python/ceval.c INSTRUCTION_START, Python/generated_cases.c.h "frame->instr_ptr =
 * next_instr").
 *  - Where a thread has its state: in its slot of a key, from 3.15 on in a variable of its own.
 *  - A frame that is linked counts, even where CPython itself still calls it incomplete
 *    (_PyFrame_IsIncomplete): its function is what runs.
 *  - 3.12+: each native eval frame links a shim before its first Python frame; 3.11 marks that
 *    frame is_entry.
 */

#define WALK_STEPS_MAX (2 * PY_FRAMES_MAX + 2) /* a shim may lie below every frame */

/* What a walk works with. In BPF it lies in a map, where the verifier takes every number for
 * unknown and so looks at the loop's body once, not once per count. */
struct walk_scratch {
	__u64 window[WALK_WINDOW_WORDS];
	__u64 code[WALK_CODE_WORDS];
	__u64 string[WALK_STRING_WORDS];
	__u64 name, filename; /* sums of them, where they identify the code object; else 0 */
	__u64 low, high;      /* addresses that the window holds */
	__u64 code_at;	      /* address of the code object whose header `code` holds; 0: none */
	__u64 direct_tsd;     /* runtime of the process whose threads hold their first block */
	__u64 next;	      /* address of the frame to look at */
	__u64 tstate;	      /* of the thread; 0: has none */
	__u32 count;
	__u32 run;    /* frames since the last shim */
	__u32 status; /* enum py_walk_status */
	__u32 linked; /* `caller` is known, and not yet compared */
	__u64 caller; /* frame that the innermost eval loop was called from, as its cframe has it */
};

struct walk {
	const struct py_process *process;
	struct walk_scratch *scratch;
	struct py_raw_frame *frames; /* room for WALK_MAX(walk) */
#ifndef __bpf__
	const struct memory *memory;
	__u32 max;
#endif
};

/* Keeps clang from checking another register than the one that is used. */
#define WALK_BARRIER(x) __asm__ volatile("" : "+r"(x))

/* In BPF the room is a constant, and indices are masked for the verifier. */
#ifdef __bpf__
#define WALK_MAX(walk) PY_FRAMES_MAX
#define WALK_INDEX(i) ((i) & (PY_FRAMES_MAX - 1))
#else
#define WALK_MAX(walk) (walk)->max
#define WALK_INDEX(i) (i)
#endif

/* Fields of the frame at `next`, which lies in the window. */
static __always_inline __u64 walk_frame_word(const struct walk_scratch *scratch, __u32 offset)
{
	__u64 at = (scratch->next - scratch->low + offset) >> 3;

	return scratch->window[at & (WALK_WINDOW_WORDS - 1)];
}

static __always_inline __u32 walk_frame_u32(const struct walk_scratch *scratch, __u32 offset)
{
	__u64 at = (scratch->next - scratch->low + offset) >> 2;

	return ((const __u32 *)scratch->window)[at & (2 * WALK_WINDOW_WORDS - 1)];
}

static __always_inline __u8 walk_frame_byte(const struct walk_scratch *scratch, __u32 offset)
{
	__u64 at = scratch->next - scratch->low + offset;

	return ((const __u8 *)scratch->window)[at & (8 * WALK_WINDOW_WORDS - 1)];
}

static __always_inline __u64 walk_code_word(const struct walk_scratch *scratch, __u32 offset)
{
	return scratch->code[(offset >> 3) & (WALK_CODE_WORDS - 1)];
}

static __always_inline __u32 walk_code_u32(const struct walk_scratch *scratch, __u32 offset)
{
	return ((const __u32 *)scratch->code)[(offset >> 2) & (2 * WALK_CODE_WORDS - 1)];
}

/*
 * Brings the frame at `next` into the window. A read costs the same whether it is of 8 bytes or of
 * a thousand, and from 3.11 on the frames of a thread lie end to end in its data stack, callers
 * below callees: so what lies below is read with it, within its page, where nothing more can fault.
 */
static __always_inline long walk_read_frame(struct walk *walk)
{
	struct walk_scratch *scratch = walk->scratch;
	__u64 addr = scratch->next, size = walk->process->layout.frame_size;
	__u64 high = addr + size, low = addr & ~4095ull;

	if (addr >= scratch->low && high <= scratch->high)
		return 0;
	if (size > 8 * WALK_FRAME_WORDS)
		return -1;
	if (walk->process->layout.frame_objects)
		low = addr;
	else if (high - low > sizeof(scratch->window))
		low = high - sizeof(scratch->window);
	scratch->low = low;
	scratch->high = high;
	size = high - low;
	WALK_BARRIER(size);
	if (size <= sizeof(scratch->window) && !WALK_READ(walk, scratch->window, size, low))
		return 0;
	scratch->low = addr;
	size = high - addr;
	WALK_BARRIER(size);
	if (size <= sizeof(scratch->window) && !WALK_READ(walk, scratch->window, size, addr))
		return 0;
	scratch->high = 0;
	return -1;
}

/*
 * A sum of the string's characters, as far as they fit and lie in the page of its header. Bytes
 * behind its end are left out, since they change with whatever lies there. Only compact strings
 * count. 0 where it cannot be read.
 */
static __always_inline __u64 walk_string(struct walk *walk, __u64 object)
{
	const struct py_layout *layout = &walk->process->layout;
	struct walk_scratch *scratch = walk->scratch;
	__u64 size = 4096 - (object & 4095), data, left, sum = 1;
	__u32 state;

	if (size > sizeof(scratch->string))
		size = sizeof(scratch->string);
	WALK_BARRIER(size);
	if (size > sizeof(scratch->string) || size < WALK_STRING_HEADER ||
	    WALK_READ(walk, scratch->string, size, object))
		return 0;
	left = scratch->string[(layout->unicode_length >> 3) & (WALK_STRING_WORDS - 1)];
	state = ((const __u32 *)scratch
			 ->string)[(layout->unicode_state >> 2) & (2 * WALK_STRING_WORDS - 1)];
	/* kind:3, compact, ascii */
	state >>= layout->unicode_kind_bit & 31;
	if (!(state & 1u << 3))
		return 1;
	left *= state & 7;
	data = state & 1u << 4 ? layout->unicode_ascii_data : layout->unicode_compact_data;
	if (data + left > size)
		left = data < size ? size - data : 0;
	data >>= 3;
	for (int i = 0; i < WALK_IDENTITY_WORDS; i++) {
		__u64 word = scratch->string[(data + i) & (WALK_STRING_WORDS - 1)];

		if (left < 8) {
			sum += word & ~(~0ull << 8 * left);
			break;
		}
		sum = (sum + word) * 0x9e3779b97f4a7c15ull;
		sum ^= sum >> 29;
		left -= 8;
	}
	return sum | 1;
}

/* In recursion one header serves many frames: within a walk the thread stands still. */
static __always_inline long walk_read_code(struct walk *walk, __u64 addr)
{
	struct walk_scratch *scratch = walk->scratch;
	__u32 size = walk->process->layout.code_size;

	if (scratch->code_at == addr)
		return 0;
	scratch->code_at = 0;
	if (size > sizeof(scratch->code))
		size = sizeof(scratch->code);
	if (WALK_READ(walk, scratch->code, size, addr))
		return -1;
	scratch->name = scratch->filename = 0;
	if (walk->process->reuse >= WALK_REUSE_MANY && walk->process->layout.identity_strings) {
		const struct py_layout *layout = &walk->process->layout;

		scratch->name = walk_string(walk, walk_code_word(scratch, layout->code_name));
		scratch->filename = walk_string(walk,
						walk_code_word(scratch, layout->code_filename));
	}
	scratch->code_at = addr;
	return 0;
}

/* Of the code object whose header lies in scratch->code. A sum of products with odd constants: the
 * multiplications do not wait for one another, and any one word that differs changes the sum. */
static __always_inline __u32 walk_fingerprint(const struct py_layout *layout,
					      const struct walk_scratch *scratch)
{
	const __u64 *words = scratch->code;
	const __u8 *at = layout->code_identity;
	__u64 a = 0, b = 0;

#define WALK_WORD(i) words[at[i] & (WALK_CODE_WORDS - 1)]
	a += WALK_WORD(0) * 0x9e3779b97f4a7c15ull;
	b += WALK_WORD(1) * 0xbf58476d1ce4e5b9ull;
	a += WALK_WORD(2) * 0x94d049bb133111ebull;
	b += WALK_WORD(3) * 0xff51afd7ed558ccdull;
	a += WALK_WORD(4) * 0xc4ceb9fe1a85ec53ull;
	b += WALK_WORD(5) * 0xd6e8feb86659fd93ull;
	a += WALK_WORD(6) * 0xa0761d6478bd642full;
	b += WALK_WORD(7) * 0xe7037ed1a0b428dbull;
	a += WALK_WORD(8) * 0x8ebc6af09c88c6e3ull;
	b += WALK_WORD(9) * 0x589965cc75374cc3ull;
#undef WALK_WORD
	a += b + scratch->name * 0xbf58476d1ce4e5b9ull + scratch->filename;
	a ^= a >> 32;
	a *= 0x1d8e4e27c47d124full;
	return (__u32)(a >> 32);
}

/* The value of the thread's TSD slot, 0 where it has none. */
static __always_inline int walk_tsd(struct walk *walk, __u64 thread_pointer, __u64 *value)
{
	const struct py_tsd *tsd = &walk->process->tsd;
	struct walk_scratch *scratch = walk->scratch;
	__u64 block = 0, first;
	__u32 key[2] = {0, 0};
	__u32 index;

	*value = 0;
	if (!walk->process->tss_key) {
		key[1] = walk->process->key;
	} else {
		/* { int _is_initialized; pthread_key_t _key; } (Include/cpython/pythread.h) */
		if (WALK_READ(walk, key, sizeof(key), walk->process->tss_key - sizeof(key[0])))
			return PY_WALK_FAULT;
		if (walk->process->layout.key_bare ? key[1] == (__u32)-1 : !key[0])
			return PY_WALK_NO_THREAD;
	}
	if (!tsd->block_keys)
		return PY_WALK_BAD;
	index = key[1] / tsd->block_keys;
	if (index >= tsd->block_count)
		return PY_WALK_BAD;
	/* glibc has a thread's first block in the thread itself, before the pointers. Where that
	 * was seen to be so, it is so for every thread of the process. */
	first = thread_pointer + (__s64)tsd->blocks - (__u64)tsd->block_keys * tsd->entry_size;
	if (index == 0 && scratch->direct_tsd == walk->process->runtime)
		block = first;
	else if (WALK_READ(walk, &block, sizeof(block),
			   thread_pointer + (__s64)tsd->blocks + 8 * (__u64)index))
		return PY_WALK_FAULT;
	if (!block)
		return PY_WALK_NO_THREAD;
	if (index == 0 && block == first)
		scratch->direct_tsd = walk->process->runtime;
	index = key[1] % tsd->block_keys;
	if (WALK_READ(walk, value, sizeof(*value),
		      block + (__u64)index * tsd->entry_size + tsd->data))
		return PY_WALK_FAULT;
	return *value ? PY_WALK_OK : PY_WALK_NO_THREAD;
}

/* The value of the thread's variable. */
static __always_inline int walk_variable(struct walk *walk, __u64 thread_pointer, __u64 *value)
{
	const struct py_process *process = walk->process;

	if (WALK_READ(walk, value, sizeof(*value), thread_pointer + (__s64)process->variable[0]))
		return PY_WALK_FAULT;
	if (!*value && process->variable[1] &&
	    WALK_READ(walk, value, sizeof(*value), thread_pointer + (__s64)process->variable[1]))
		return PY_WALK_FAULT;
	return *value ? PY_WALK_OK : PY_WALK_NO_THREAD;
}

/* Up to 3.11 the slot names the outer interpreter's thread state while a sub-interpreter runs. */
static __always_inline __u64 walk_current(struct walk *walk, __u64 thread_pointer, __u64 slot)
{
	const struct py_layout *layout = &walk->process->layout;
	__u64 current = 0, thread = 0;

	if (WALK_READ(walk, &current, sizeof(current), walk->process->current) || !current ||
	    current == slot)
		return slot;
	if (WALK_READ(walk, &thread, sizeof(thread), current + layout->tstate_thread_id) ||
	    thread != thread_pointer + (__s64)walk->process->tsd.self)
		return slot;
	return current;
}

/*
 * 3.11, 3.12: _PyEval_EvalFrameDefault() makes its cframe, which lies in its C frame, the thread's
 * some instructions before it fills it. In between, the cframe is what an earlier call left there:
 * mostly its frame's address, where by now another function's frame lies, not yet linked to its
 * caller. What tells is that the loop links its first frame to the frame of the cframe before its
 * own; walk_is_torn() compares them.
 */
static __always_inline long walk_cframe(struct walk *walk, __u64 *frame)
{
	const struct py_layout *layout = &walk->process->layout;
	struct walk_scratch *scratch = walk->scratch;
	__u64 cframe = *frame, before = 0;

	if (WALK_READ(walk, frame, sizeof(*frame), cframe + layout->cframe_frame))
		return -1;
	/* { current_frame, previous }. The thread's own cframe has none before it. */
	if (!WALK_READ(walk, &before, sizeof(before), cframe + layout->cframe_frame + 8) &&
	    before &&
	    !WALK_READ(walk, &scratch->caller, sizeof(scratch->caller),
		       before + layout->cframe_frame))
		scratch->linked = 1;
	return 0;
}

/* At the first frame of the innermost eval loop, whose previous frame that is: were the frames so
 * far never linked so? */
static __always_inline int walk_is_torn(struct walk_scratch *scratch, __u64 previous)
{
	int torn = scratch->linked && previous != scratch->caller;

	scratch->linked = 0;
	if (torn) {
		scratch->status = PY_WALK_BAD;
		scratch->count = 0;
	}
	return torn;
}

/* Finds the thread's innermost frame; false when there is nothing to walk. */
static __always_inline int walk_begin(struct walk *walk, __u64 thread_pointer)
{
	const struct py_layout *layout = &walk->process->layout;
	struct walk_scratch *scratch = walk->scratch;
	__u64 tstate = 0, frame = 0;

	scratch->count = 0;
	scratch->run = 0;
	scratch->linked = 0;
	scratch->next = 0;
	scratch->low = scratch->high = 0;
	scratch->code_at = 0;
	scratch->tstate = 0;
	scratch->status = walk->process->variable[0] ? walk_variable(walk, thread_pointer, &tstate)
						     : walk_tsd(walk, thread_pointer, &tstate);
	if (scratch->status != PY_WALK_OK)
		return 0;
	if (walk->process->current)
		tstate = walk_current(walk, thread_pointer, tstate);
	scratch->tstate = tstate;
	scratch->status = PY_WALK_FAULT;
	if (WALK_READ(walk, &frame, sizeof(frame), tstate + layout->tstate_frame))
		return 0;
	if (layout->has_cframe && frame && walk_cframe(walk, &frame))
		return 0;
	scratch->status = PY_WALK_OK;
	scratch->next = frame;
	return frame != 0;
}

/* Free-threaded 3.14+: each thread specializes a copy of the bytecode of its own (_PyCodeArray in
 * Include/cpython/code.h: a size, then pointers); copy 0 is that in the code object. */
static __always_inline __u64 walk_bytecode(struct walk *walk, __u64 code)
{
	const struct py_layout *layout = &walk->process->layout;
	__u64 copies = 0, copy = code + layout->code_bytes;
	__u32 index;

	if (!layout->frame_tlbc)
		return copy;
	index = walk_frame_u32(walk->scratch, layout->frame_tlbc);
	if (!index)
		return copy;
	if (WALK_READ(walk, &copies, sizeof(copies), code + layout->code_tlbc) ||
	    WALK_READ(walk, &copy, sizeof(copy), copies + 8 + 8 * (__u64)index))
		return 0;
	return copy;
}

/* Offset of the instruction in co_code, or PY_FRAME_NO_INSTR. */
static __always_inline __u32 walk_instr(struct walk *walk, __u64 code)
{
	const struct py_layout *layout = &walk->process->layout;
	const struct walk_scratch *scratch = walk->scratch;
	__u64 offset, units;

	if (layout->frame_objects) {
		offset = walk_frame_u32(scratch, layout->frame_instr);
		if (offset == (__u32)-1)
			return 0;
		offset <<= layout->lasti_shift & 1;
		return offset & ~(__u64)PY_INSTR_MASK ? PY_FRAME_NO_INSTR : (__u32)offset;
	}
	offset = walk_frame_word(scratch, layout->frame_instr) - walk_bytecode(walk, code);
	units = walk_code_word(scratch, layout->code_units);
	if (offset == (__u64)-2)
		return 0;
	if (offset & 1 || offset > PY_INSTR_MASK || (offset >> 1) >= units)
		return PY_FRAME_NO_INSTR;
	return (__u32)offset;
}

/* Looks at one frame; false at the end, with scratch->status saying which. */
static __always_inline int walk_step(struct walk *walk)
{
	const struct py_layout *layout = &walk->process->layout;
	struct walk_scratch *scratch = walk->scratch;
	struct py_raw_frame *frame;
	__u64 code, previous;
	__u8 owner;

	if (!scratch->next) {
		/* Before its first run ended: YIELD_VALUE unlinks a generator's frame some
		 * instructions before it is no more the thread's. That one frame is sound. */
		if (scratch->linked)
			scratch->status = PY_WALK_BAD;
		return 0;
	}
	if (scratch->next & 7) {
		scratch->status = PY_WALK_BAD;
		return 0;
	}
	if (walk_read_frame(walk)) {
		scratch->status = PY_WALK_FAULT;
		return 0;
	}
	owner = walk_frame_byte(scratch, layout->frame_owner);
	code = walk_frame_word(scratch, layout->frame_code);
	previous = walk_frame_word(scratch, layout->frame_previous);
	if (layout->owner_shim && owner >= layout->owner_shim) {
		if (walk_is_torn(scratch, previous))
			return 0;
		if (scratch->run && scratch->count)
			walk->frames[WALK_INDEX(scratch->count - 1)].instr |= PY_FRAME_ENTRY;
		scratch->run = 0;
		scratch->next = previous;
		return 1;
	}
	if (scratch->count >= WALK_MAX(walk)) {
		scratch->status = PY_WALK_TRUNCATED;
		return 0;
	}
	if (layout->frame_tagged)
		code &= ~3ull;
	if (!code || code & 7) {
		scratch->status = PY_WALK_BAD;
		return 0;
	}
	if (walk_read_code(walk, code)) {
		scratch->status = PY_WALK_FAULT;
		return 0;
	}
	frame = &walk->frames[WALK_INDEX(scratch->count)];
	frame->code = code;
	frame->fingerprint = walk_fingerprint(layout, scratch);
	frame->instr = walk_instr(walk, code);
	scratch->count++;
	scratch->run++;
	if (layout->frame_objects ||
	    (layout->frame_is_entry && walk_frame_byte(scratch, layout->frame_is_entry))) {
		frame->instr |= PY_FRAME_ENTRY;
		if (walk_is_torn(scratch, previous))
			return 0;
	}
	scratch->next = previous;
	return 1;
}

#endif
