/*
 * The interpreter walker in the kernel: runs at the overflow of a sampled event, in the context of
 * the thread that was interrupted, and writes what it found into the ring that the sample goes to,
 * directly before it.
 *
 * Rules that shape it:
 *  - the verifier follows every path: the walk is one loop with one body (bpf_loop() where the
 *    kernel has it, 5.17, else a bounded loop of fewer steps), offsets are masked, and what needs a
 *    long path per object (names, line tables) is done for a few objects per sample;
 *  - it may run in an NMI: only preallocated maps, no faults. What cannot be read without a fault
 *    is asked for from user space, through `requests`;
 *  - perf keeps programs of one CPU from nesting (bpf_prog_active), so scratch space is per CPU.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include <stdbool.h>

#define WALK_READ(walk, dst, len, addr) bpf_probe_read_user((dst), (len), (const void *)(addr))
#include "perfmap/walk_core.h"
#include "perfmap/walker_maps.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* The kernel's structures, as far as they are used; CO-RE finds the fields. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct ns_common {
	unsigned int inum;
};
struct pid_namespace {
	struct ns_common ns;
};
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	unsigned int level;
	struct upid numbers[1];
};
typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	atomic_t live;
};
#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase;
};
#elif defined(__TARGET_ARCH_arm64)
struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
};
#elif defined(__TARGET_ARCH_riscv)
struct thread_struct {
};
/* arch/riscv/include/asm/ptrace.h: what user mode had when it was left */
struct pt_regs {
	unsigned long tp;
};
#else
#error "this architecture needs its thread pointer here and in task_thread_pointer()"
#endif
struct mm_struct {
	unsigned long start_stack;
};
struct pt_regs___stack {
	unsigned long sp; /* of x86, arm64 and riscv64 alike */
};
struct task_struct {
	struct thread_struct thread;
	struct mm_struct *mm;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
	int pid, tgid;
	unsigned long sas_ss_sp, sas_ss_size;
};
#pragma clang attribute pop

/* Set before loading. The inode of pyperf's pid namespace when it is not the initial one: process
 * numbers are then those of that namespace, as perf's are. */
const volatile __u32 pid_namespace_inum;
/* For tests: do as on a kernel without bpf_loop(). */
const volatile bool plain_loops;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WALKER_PROCESSES);
	__type(key, __u32);
	__type(value, struct py_process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WALKER_SEEN);
	__type(key, struct walker_code_key);
	__type(value, __u32);
} seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} output SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, WALKER_REQUEST_BYTES);
} requests SEC(".maps");

/* Values of per-CPU maps end at 32 KB, so this is an array indexed by the CPU. */
struct cpu_scratch {
	struct walker_stats stats;
	__u32 pid;
	__u32 fresh_count;
	struct walk_scratch walk;
	struct walker_code_key cache[WALKER_SEEN_CACHE];
	__u32 fresh[WALKER_NEW_CODES]; /* indices of frames whose code objects are new */
	struct {
		__u64 header[sizeof(struct py_raw_frames) / 8];
		struct py_raw_frame frames[PY_FRAMES_MAX];
	} out;
	struct {
		struct py_raw_code header;
		__u64 data[(3 * PY_STRING_BYTES_MAX + PY_TABLE_BYTES_MAX + PY_BYTECODE_BYTES_MAX) /
			   8];
	} code;
	__u64 code_words; /* of code.data that are filled */
	__u64 object[8];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_scratch);
} scratches SEC(".maps");

/* Set by py_engine_copy_stacks(): bytes of a stack whose base is not known, 0 for no copies; and
 * the most that a stack down to its base may have. */
__u32 stack_usual, stack_most;

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WALKER_THREADS);
	__type(key, __u32);
	__type(value, struct py_stack);
} stacks SEC(".maps");

/* Indexed by the CPU. */
#define STACK_PAGE 4096u
#define STACK_PAGES 16
struct stack_copy {
	struct py_raw_stack header;
	__u8 bytes[PY_STACK_BYTES_MAX];
};
_Static_assert(PY_STACK_BYTES_MAX <= STACK_PAGES * STACK_PAGE, "pages are counted");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_copy);
} stack_copies SEC(".maps");

/* bpf_loop() came with 5.17. Before, loops are unrolled by the verifier. */
#define OLD_KERNEL_STEPS PY_FRAMES_MAX
#define OLD_KERNEL_NEW_CODES 4

static __always_inline bool has_bpf_loop(void)
{
	return !plain_loops && bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop);
}

/* Number of the task's process in pyperf's pid namespace; 0 where it is not in it. */
static __always_inline __u32 task_tgid(struct task_struct *task)
{
	struct task_struct *leader;
	struct pid *pid;
	__u32 level;

	if (!pid_namespace_inum)
		return BPF_CORE_READ(task, tgid);
	leader = BPF_CORE_READ(task, group_leader);
	pid = BPF_CORE_READ(leader, thread_pid);
	level = BPF_CORE_READ(pid, level);
	/* MAX_PID_NS_LEVEL is 32; nobody nests that deep. */
	for (__u32 i = 1; i < 8; i++) {
		struct upid upid = {0};

		if (i > level)
			break;
		bpf_probe_read_kernel(&upid, sizeof(upid),
				      (void *)pid + bpf_core_field_offset(pid->numbers) +
					      i * sizeof(upid));
		if (BPF_CORE_READ(upid.ns, ns.inum) == pid_namespace_inum)
			return upid.nr;
	}
	return 0;
}

static __always_inline __u64 task_thread_pointer(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread.fsbase);
#elif defined(__TARGET_ARCH_arm64)
	return BPF_CORE_READ(task, thread.uw.tp_value);
#elif defined(__TARGET_ARCH_riscv)
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(
		(void *)bpf_get_current_task_btf());

	return BPF_CORE_READ(regs, tp);
#endif
}

static __always_inline struct cpu_scratch *this_scratch(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratches, &cpu);
}

static __always_inline void send_request(struct cpu_scratch *scratch, __u32 kind, __u32 pid,
					 const struct walker_code_key *key)
{
	struct walker_request request = {
		.pid = pid,
		.kind = kind,
		.lineage = key->lineage,
		.code = key->code,
		.fingerprint = key->fingerprint,
	};

	if (bpf_ringbuf_output(&requests, &request, sizeof(request), BPF_RB_FORCE_WAKEUP))
		scratch->stats.requests_lost++;
}

static __always_inline struct walker_code_key *cache_slot(struct cpu_scratch *scratch, __u64 code)
{
	return &scratch->cache[(code >> 4 ^ code >> 13) & (WALKER_SEEN_CACHE - 1)];
}

/* Marks a code object as sent, so that it is not sent again. */
static __always_inline void remember(struct cpu_scratch *scratch, __u32 pid,
				     const struct walker_code_key *key)
{
	__u32 one = 1;

	if (bpf_map_update_elem(&seen, key, &one, BPF_ANY) == -7 /* E2BIG */)
		send_request(scratch, WALKER_REQUEST_FORGET, pid, key);
	*cache_slot(scratch, key->code) = *key;
}

/*
 * Jitted code is a chain of functions that pass on the frame, the stack pointer and the thread
 * state (Tools/jit/template.c): in 3.13 by GHC's convention, the third argument in r12; later by
 * preserve_none, which begins with r12, and from 3.15 on with the executor before them.
 */
enum held {
	HELD_R12,
	HELD_R14,
	HELD_R15,
	HELD,
};

/* State of one run, on the stack; the loop's callback gets it. */
struct run {
	void *ctx;
	__u64 held[HELD]; /* what registers hold: the thread state, perhaps */
	struct cpu_scratch *scratch;
	struct walk walk;
	__u32 pid;
};

/* Notes the frame that was just written when its code object was not sent yet. */
static __always_inline void note_code(struct run *run)
{
	struct cpu_scratch *scratch = run->scratch;
	__u32 index = WALK_INDEX(scratch->walk.count - 1);
	struct py_raw_frame *frame = &scratch->out.frames[index];
	struct walker_code_key key = {
		.code = frame->code,
		.fingerprint = frame->fingerprint,
		.lineage = run->walk.process->lineage,
	};
	struct walker_code_key *slot = cache_slot(scratch, key.code);

	if (slot->code == key.code && slot->fingerprint == key.fingerprint &&
	    slot->lineage == key.lineage)
		return;
	if (slot->code == key.code && slot->lineage == key.lineage)
		((struct py_process *)run->walk.process)->reuse++;
	if (bpf_map_lookup_elem(&seen, &key)) {
		*slot = key;
		return;
	}
	/* From here on it is taken for sent: recursion does not note it again. */
	if (scratch->fresh_count < (has_bpf_loop() ? WALKER_NEW_CODES : OLD_KERNEL_NEW_CODES)) {
		scratch->fresh[scratch->fresh_count & (WALKER_NEW_CODES - 1)] = index;
		scratch->fresh_count++;
		*slot = key;
		return;
	}
	/* More new objects than one sample can read: user space reads them. */
	send_request(scratch, WALKER_REQUEST_CODE, run->pid, &key);
	remember(scratch, run->pid, &key);
}

static long step(__u32 index, void *ctx)
{
	struct run *run = ctx;
	struct cpu_scratch *scratch = run->scratch;
	__u32 before = scratch->walk.count;

	if (!walk_step(&run->walk))
		return 1;
	if (scratch->walk.count != before)
		note_code(run);
	return 0;
}

/*
 * This one and the two below are global functions: the verifier looks at such a function once, by
 * itself, instead of at each call with all that the caller knows, which keeps the load time short.
 * They take numbers only (older kernels allow no more) and find the rest anew.
 *
 * One step, for kernels without bpf_loop().
 */
__noinline int step_alone(__u64 index)
{
	struct run run = {.scratch = this_scratch()};

	if (!run.scratch)
		return 1;
	run.pid = run.scratch->pid;
	run.walk.process = bpf_map_lookup_elem(&processes, &run.scratch->pid);
	if (!run.walk.process)
		return 1;
	run.walk.scratch = &run.scratch->walk;
	run.walk.frames = run.scratch->out.frames;
	return step(index, &run);
}

/*
 * Appends `size` bytes of the process to the code record that is being made. The barriers keep
 * clang from checking another register than the one that is used.
 */
static __always_inline bool add_bytes(struct cpu_scratch *scratch, __u64 addr, __u64 size,
				      __u64 size_max)
{
	__u64 at = scratch->code_words, last;

	if (!size)
		return true;
	last = at + (size - 1) / 8;
	barrier_var(last);
	if (last >= sizeof(scratch->code.data) / 8)
		return false;
	scratch->code.data[last] = 0; /* the padding */
	barrier_var(size);
	barrier_var(at);
	if (size > size_max || at > (sizeof(scratch->code.data) - size_max) / 8 ||
	    bpf_probe_read_user(&scratch->code.data[at], size, (void *)addr))
		return false;
	scratch->code_words = last + 1;
	return true;
}

/*
 * Only compact strings are read: what CPython makes itself always is
 * (Include/cpython/unicodeobject.h).
 */
__noinline int add_string(__u64 addr, __u64 which)
{
	struct cpu_scratch *scratch = this_scratch();
	const struct py_process *process;
	struct py_raw_string *string;
	__u64 len, size, max = PY_STRING_BYTES_MAX;
	__u32 state;
	bool whole;

	if (!scratch || which > 2)
		return 0;
	string = &scratch->code.header.name + which;
	string->kind = 1;
	string->len = 0;
	process = bpf_map_lookup_elem(&processes, &scratch->pid);
	if (!process || !addr)
		return 0;
	size = process->layout.unicode_state + sizeof(state);
	barrier_var(size);
	if (size > sizeof(scratch->object) ||
	    bpf_probe_read_user(scratch->object, size, (void *)addr))
		return 0;
	len = scratch->object[process->layout.unicode_length >> 3 & 7];
	state = ((__u32 *)scratch->object)[process->layout.unicode_state >> 2 & 15];
	/* Three bits of kind; compact, ascii. */
	state >>= process->layout.unicode_kind_bit & 31;
	if (!(state & 1u << 3))
		return 0;
	addr += state & 1u << 4 ? process->layout.unicode_ascii_data
				: process->layout.unicode_compact_data;
	state &= 7;
	if (state == 1)
		max = PY_STRING_BYTES_MAX;
	else if (state == 2)
		max = PY_STRING_BYTES_MAX / 2;
	else if (state == 4)
		max = PY_STRING_BYTES_MAX / 4;
	else
		return 0;
	whole = len <= max;
	if (!whole)
		len = max;
	if (!add_bytes(scratch, addr, len * state, PY_STRING_BYTES_MAX))
		return 0;
	string->kind = state;
	string->len = len;
	return whole; /* the rest is asked for */
}

__noinline int add_table(__u64 addr)
{
	struct cpu_scratch *scratch = this_scratch();
	const struct py_process *process;
	__u64 len = 0;

	if (!scratch)
		return 0;
	process = bpf_map_lookup_elem(&processes, &scratch->pid);
	if (!process || !addr ||
	    bpf_probe_read_user(&len, sizeof(len), (void *)(addr + process->layout.bytes_size)) ||
	    len > PY_TABLE_BYTES_MAX ||
	    !add_bytes(scratch, addr + process->layout.bytes_data, len, PY_TABLE_BYTES_MAX))
		return 0;
	scratch->code.header.table_len = len;
	return 1;
}

/* The bytecode: up to 3.10 a bytes object, from 3.11 on the end of the code object itself. */
__noinline int add_bytecode(__u64 code)
{
	struct cpu_scratch *scratch = this_scratch();
	const struct py_process *process;
	__u64 len = 0;

	if (!scratch)
		return 0;
	process = bpf_map_lookup_elem(&processes, &scratch->pid);
	if (!process)
		return 0;
	if (process->layout.code_units) {
		len = 2 * walk_code_word(&scratch->walk, process->layout.code_units);
		code += process->layout.code_bytes;
	} else {
		code = walk_code_word(&scratch->walk, process->layout.code_object);
		if (bpf_probe_read_user(&len, sizeof(len),
					(void *)(code + process->layout.bytes_size)))
			return 0;
		code += process->layout.bytes_data;
	}
	if (!len || len > PY_BYTECODE_BYTES_MAX ||
	    !add_bytes(scratch, code, len, PY_BYTECODE_BYTES_MAX))
		return 0;
	scratch->code.header.bytecode_len = len;
	return 1;
}

/* Reads and sends one code object. */
static long send_code(__u32 index, void *ctx)
{
	struct run *run = ctx;
	struct cpu_scratch *scratch = run->scratch;
	const struct py_layout *layout = &run->walk.process->layout;
	struct py_raw_code *header = &scratch->code.header;
	struct walker_code_key key;
	const struct py_raw_frame *frame;
	__u8 missing = 0;
	int bytecode;
	__u64 size;

	if (index >= scratch->fresh_count)
		return 1;
	frame = &scratch->out.frames[WALK_INDEX(scratch->fresh[index & (WALKER_NEW_CODES - 1)])];
	key.code = frame->code;
	key.fingerprint = frame->fingerprint;
	key.lineage = run->walk.process->lineage;
	/* Noted twice, where two share a slot of the cache. */
	if (bpf_map_lookup_elem(&seen, &key))
		return 0;
	/* Until it is sent. */
	cache_slot(scratch, key.code)->code = 0;
	if (walk_read_code(&run->walk, key.code))
		return 0;

	header->magic = PY_RAW_CODE;
	header->lineage = key.lineage;
	header->code = key.code;
	header->fingerprint = key.fingerprint;
	header->firstlineno = walk_code_u32(&scratch->walk, layout->code_firstlineno);
	header->minor = layout->minor;
	header->pid = run->pid;
	header->table_len = 0;
	header->bytecode_len = 0;
	scratch->code_words = 0;
	if (!add_string(walk_code_word(&scratch->walk, layout->code_name), 0))
		missing |= PY_CODE_MISSING_NAME;
	/* Before 3.11 there is none. */
	if (!add_string(layout->code_qualname
				? walk_code_word(&scratch->walk, layout->code_qualname)
				: 0,
			1) &&
	    layout->code_qualname)
		missing |= PY_CODE_MISSING_QUALNAME;
	if (!add_string(walk_code_word(&scratch->walk, layout->code_filename), 2))
		missing |= PY_CODE_MISSING_FILENAME;
	if (!add_table(walk_code_word(&scratch->walk, layout->code_linetable)))
		missing |= PY_CODE_MISSING_TABLE;
	header->missing = missing;
	bytecode = add_bytecode(key.code);
	size = sizeof(*header) + 8 * scratch->code_words;
	barrier_var(size);
	if (size > sizeof(scratch->code))
		return 0;
	if (bpf_perf_event_output(run->ctx, &output, BPF_F_CURRENT_CPU, &scratch->code, size)) {
		scratch->stats.output_lost++;
		return 0;
	}
	scratch->stats.code_sent++;
	if (missing || !bytecode)
		send_request(scratch, WALKER_REQUEST_CODE, run->pid, &key);
	remember(scratch, run->pid, &key);
	return 0;
}

static __always_inline bool holds_state(const struct run *run)
{
	__u64 tstate = run->scratch->walk.tstate;

	if (!tstate || run->walk.process->layout.minor < 13)
		return false;
	if (run->walk.process->layout.minor == 13)
		return run->held[HELD_R12] == tstate;
	return run->held[HELD_R14] == tstate || run->held[HELD_R15] == tstate;
}

static __always_inline void send_frames(struct run *run)
{
	struct cpu_scratch *scratch = run->scratch;
	struct py_raw_frames *header = (struct py_raw_frames *)scratch->out.header;
	__u64 size;

	header->magic = PY_RAW_FRAMES;
	header->status = scratch->walk.status;
	header->count = scratch->walk.count;
	header->lineage = run->walk.process->lineage;
	header->flags = holds_state(run) ? PY_FRAMES_STATE_HELD : 0;
	size = sizeof(struct py_raw_frames) + scratch->walk.count * sizeof(struct py_raw_frame);
	barrier_var(size);
	if (size > sizeof(scratch->out))
		return;
	if (bpf_perf_event_output(run->ctx, &output, BPF_F_CURRENT_CPU, &scratch->out, size))
		scratch->stats.output_lost++;
}

/*
 * As many of the bytes as are in memory; usually all are. Else the pages that are, from the first
 * on, are counted, up to one that is absent: behind a guard another stack may lie. There is no
 * branch, since the verifier would follow each to the end of the program.
 */
static __always_inline __u64 copy_stack(struct stack_copy *copy, __u64 sp, __u64 len)
{
	__u64 first = STACK_PAGE - (sp & (STACK_PAGE - 1)), pages = 0, whole = ~0ull;
	__u8 byte;

	barrier_var(len);
	if (len > PY_STACK_BYTES_MAX)
		len = PY_STACK_BYTES_MAX;
	if (!bpf_probe_read_user(copy->bytes, len, (void *)sp))
		return len;
#pragma unroll
	for (__u32 page = 0; page < STACK_PAGES - 1; page++) {
		__u64 offset = first + page * STACK_PAGE;
		__s64 absent = bpf_probe_read_user(&byte, sizeof(byte),
						   (void *)(sp + (offset & whole)));

		absent |= len - 1 - offset; /* negative beyond the end */
		whole &= ~(absent >> 63);
		pages += whole & 1;
		barrier_var(pages);
	}
	first += pages * STACK_PAGE;
	barrier_var(first);
	if (first > len)
		first = len;
	/* Kernels before 6.8 learn no bound where two registers are compared. */
	barrier_var(first);
	if (first > PY_STACK_BYTES_MAX)
		first = PY_STACK_BYTES_MAX;
	return bpf_probe_read_user(copy->bytes, first, (void *)sp) ? 0 : first;
}

static __always_inline void send_copy(void *ctx, struct stack_copy *copy, __u64 end)
{
	__u64 size, sp = copy->header.sp, len = stack_usual;

	if (end - sp <= stack_most)
		len = end - sp;
	/* Words only: what pads a record is then less than one. */
	size = sizeof(copy->header) + (copy_stack(copy, sp, len) & ~7ull);
	barrier_var(size);
	/* What finds no room is counted by the kernel, as a lost record. */
	if (size <= sizeof(*copy))
		bpf_perf_event_output(ctx, &output, BPF_F_CURRENT_CPU, copy, size);
}

/*
 * The stack from its top to its base, where the recorder has found that or the thread is the first
 * one, whose base exec has laid down; else so many bytes. perf's own copy (PERF_SAMPLE_STACK_USER)
 * has one size for all: too long for most stacks and too short for the others.
 *
 * A signal's handler may have a stack of its own (sigaltstack()): then that, and before it the
 * interrupted one, where the recorder has found what the kernel saved.
 */
static __always_inline void send_stack(void *ctx, struct task_struct *task)
{
	__u32 cpu = bpf_get_smp_processor_id(), thread = bpf_get_current_pid_tgid();
	__u64 sp, handler, size, saved = 0, base = 0;
	struct pt_regs___stack *regs;
	struct stack_copy *copy;
	struct py_stack *known;

	if (!stack_usual || !bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs) ||
	    !BPF_CORE_READ(task, mm))
		return;
	copy = bpf_map_lookup_elem(&stack_copies, &cpu);
	if (!copy)
		return;
	regs = (struct pt_regs___stack *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
	sp = BPF_CORE_READ(regs, sp);
	known = bpf_map_lookup_elem(&stacks, &thread);
	if (known) {
		base = known->base;
		saved = known->saved_sp;
	}
	if (!base && BPF_CORE_READ(task, pid) == BPF_CORE_READ(task, tgid))
		base = BPF_CORE_READ(task, mm, start_stack);
	copy->header.thread = thread;
	copy->header.handler_end = 0;
	handler = BPF_CORE_READ(task, sas_ss_sp);
	size = BPF_CORE_READ(task, sas_ss_size);
	if (sp - handler < size) {
		copy->header.magic = PY_RAW_INTERRUPTED;
		if (saved - sp < size &&
		    !bpf_probe_read_user(&copy->header.sp, sizeof(copy->header.sp), (void *)saved))
			send_copy(ctx, copy, base);
		copy->header.handler_end = base = handler + size;
	}
	copy->header.magic = PY_RAW_STACK;
	copy->header.sp = sp;
	send_copy(ctx, copy, base);
}

static __always_inline void run_walker(void *ctx, const __u64 held[HELD])
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct run run = {.ctx = ctx, .held = {held[HELD_R12], held[HELD_R14], held[HELD_R15]}};
	__u32 pid = bpf_get_current_pid_tgid() >> 32;

	send_stack(ctx, task);
	if (pid_namespace_inum)
		pid = task_tgid(task);
	run.pid = pid;
	run.walk.process = bpf_map_lookup_elem(&processes, &pid);
	if (!run.walk.process)
		return;
	run.scratch = this_scratch();
	if (!run.scratch)
		return;
	run.scratch->pid = pid;
	run.scratch->fresh_count = 0;
	run.walk.scratch = &run.scratch->walk;
	run.walk.frames = run.scratch->out.frames;
	if (walk_begin(&run.walk, task_thread_pointer(task))) {
		if (has_bpf_loop()) {
			if (bpf_loop(WALK_STEPS_MAX, step, &run, 0) == WALK_STEPS_MAX)
				run.scratch->walk.status = PY_WALK_TRUNCATED;
			bpf_loop(WALKER_NEW_CODES, send_code, &run, 0);
		} else {
			bool done = false;

			for (__u32 i = 0; i < OLD_KERNEL_STEPS && !done; i++)
				done = step_alone(i);
			if (!done)
				run.scratch->walk.status = PY_WALK_TRUNCATED;
			for (__u32 i = 0; i < OLD_KERNEL_NEW_CODES; i++)
				if (send_code(i, &run))
					break;
		}
	}
	run.scratch->stats.walks++;
	run.scratch->stats.frames += run.scratch->walk.count;
	if (run.scratch->walk.status == PY_WALK_FAULT)
		run.scratch->stats.faults++;
	send_frames(&run);
}

/* Both return 1: perf then takes its sample as well. */
SEC("perf_event")
int walk_sample(struct bpf_perf_event_data *ctx)
{
	__u64 held[HELD] = {0};

#ifdef __TARGET_ARCH_x86
	if (ctx->regs.cs & 3) {
		held[HELD_R12] = ctx->regs.r12;
		held[HELD_R14] = ctx->regs.r14;
		held[HELD_R15] = ctx->regs.r15;
	}
#endif
	run_walker(ctx, held);
	return 1;
}

SEC("tracepoint")
int walk_tracepoint(void *ctx)
{
	run_walker(ctx, (__u64[HELD]){0});
	return 1;
}

SEC("raw_tp/sched_process_fork")
int forked(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx->args[0];
	struct task_struct *child = (struct task_struct *)ctx->args[1];
	struct py_process *process;
	__u32 from, to;

	if (BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid))
		return 0; /* a thread */
	from = task_tgid(parent);
	process = bpf_map_lookup_elem(&processes, &from);
	if (!process)
		return 0;
	to = task_tgid(child);
	if (to)
		bpf_map_update_elem(&processes, &to, process, BPF_ANY);
	return 0;
}

SEC("raw_tp/sched_process_exec")
int executed(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 pid = task_tgid((struct task_struct *)ctx->args[0]);

	bpf_map_delete_elem(&processes, &pid);
	return 0;
}

SEC("raw_tp/sched_process_exit")
int exited(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	__u32 pid;

	/* do_exit() counts the thread out before this tracepoint. */
	if (BPF_CORE_READ(task, signal, live.counter) != 0)
		return 0;
	pid = task_tgid(task);
	bpf_map_delete_elem(&processes, &pid);
	return 0;
}
