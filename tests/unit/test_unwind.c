/* Stacks of a stopped child whose call chain is known by construction. */
#include "unwind/unwind.h"

#include "stopped.h"
#include "symbol/elf.h"

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The chain: frames of different sizes, none with a frame pointer but chain_alloca, no tail
 * calls. The end says when it is there and waits in a way of its own. */
#define CHAIN __attribute__((noinline, noclone, noipa, used, optimize("omit-frame-pointer")))

static volatile int sink, ready_fd;

static void tell_ready(void)
{
	char byte = 1;

	if (write(ready_fd, &byte, 1) != 1)
		_exit(1);
}

CHAIN static void leaf_spins(void)
{
	tell_ready();
	for (;;)
		sink++;
}

CHAIN static void leaf_sleeps(void)
{
	tell_ready();
	for (;;)
		pause();
}

CHAIN static void on_signal(int number)
{
	leaf_spins();
	sink++;
}

CHAIN static void leaf_signals(void)
{
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	sink++;
}

static char handlers_own[65536];

CHAIN static void leaf_signals_aside(void)
{
	const stack_t stack = {.ss_sp = handlers_own, .ss_size = sizeof(handlers_own)};
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	sink++;
}

CHAIN static void chain_d(void (*leaf)(void))
{
	volatile char buf[100];

	buf[sink & 63] = 1;
	leaf();
	sink += buf[1];
}

CHAIN static void chain_alloca(void (*leaf)(void), size_t size)
{
	volatile char *buf = alloca(size);

	buf[size / 2] = 1;
	chain_d(leaf);
	sink += buf[size / 2];
}

CHAIN static void chain_b(void (*leaf)(void), int depth)
{
	if (depth > 0)
		chain_b(leaf, depth - 1);
	else
		chain_alloca(leaf, 333 + (size_t)sink);
	sink++;
}

CHAIN static void chain_a(void (*leaf)(void))
{
	volatile long big[1000];

	big[sink & 511] = 2;
	chain_b(leaf, 3);
	sink += (int)big[3];
}

CHAIN static void *chain_thread(void *leaf)
{
	chain_a((void (*)(void))leaf);
	sink++;
	return NULL;
}

/* A child that runs the chain down to the leaf, in its main thread or in another, stopped there. */
static void start(struct stopped *target, void (*leaf)(void), bool thread)
{
	int fds[2];
	pid_t pid, tid;
	char byte;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pthread_t id;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		ready_fd = fds[1];
		if (!thread)
			chain_a(leaf);
		else if (pthread_create(&id, NULL, chain_thread, (void *)leaf) == 0)
			pthread_join(id, NULL);
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	usleep(20000); /* out of write() and into the wait */
	tid = pid;
	if (thread) {
		char path[64], list[256] = "";
		FILE *pipe;

		snprintf(path, sizeof(path), "ls /proc/%d/task", (int)pid);
		pipe = popen(path, "r");
		while (fgets(list, sizeof(list), pipe))
			if (atoi(list) != pid)
				tid = atoi(list);
		pclose(pipe);
		assert_int_not_equal(tid, pid);
	}
	if (!stopped_take(target, pid, tid)) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		print_message("ptrace is not allowed here\n");
		skip();
	}
}

static void finish(struct stopped *target)
{
	kill(target->pid, SIGKILL);
	if (target->tid != target->pid)
		waitpid(target->tid, NULL, __WALL);
	waitpid(target->pid, NULL, 0);
	stopped_release(target, 0);
}

/* Names of the frames, leaf first, "?" for none, each followed by a blank. */
static void name_stack(struct stopped *target, const struct unwind_stack *stack, char *out,
		       size_t size)
{
	*out = '\0';
	for (size_t i = 0; i < stack->count; i++) {
		const struct unwind_frame *frame = &stack->frames[i];
		struct elf_symbol symbol = {.name = "?"};
		uint64_t bias, ip = frame->ip - !frame->exact;
		struct elf_file *elf = NULL;
		struct unwind_module module;
		size_t len = strlen(out);

		if (stopped_module(target, ip, &module) == 0 && module.path &&
		    elf_open(&elf, module.path, NULL) == 0 &&
		    elf_bias(elf, module.start, module.file_offset, &bias))
			elf_symbol_at(elf, ip - bias, &symbol);
		snprintf(out + len, size - len, "%s ", symbol.name);
		elf_close(elf);
	}
}

#define ROOT "chain_d chain_alloca chain_b chain_b chain_b chain_b chain_a "

static void unwind_with(const struct unwind_backend *with, struct stopped *target,
			const char *wanted, const char *root)
{
	struct unwind_files *files = unwind_files_new();
	struct unwind_source source = stopped_source(target);
	struct unwind_frame frames[64];
	struct unwind_stack stack = {.frames = frames, .max = 64};
	struct unwinder *unwinder;
	char names[4096];

	assert_non_null(files);
	unwinder = with->open(files, &source, NULL);
	assert_non_null(unwinder);
	/* Twice: the second walk goes by the rules that the first one left behind. */
	for (int round = 0; round < 2; round++) {
		with->stack(unwinder, &target->input, &stack);
		name_stack(target, &stack, names, sizeof(names));
		if (round == 0)
			print_message("%s: %s\n", with->name, names);
		assert_int_equal(frames[0].ip, target->input.regs.ip);
		assert_non_null(strstr(names, wanted));
		assert_non_null(strstr(names, root));
		assert_string_equal(unwind_end_text(stack.end), "complete");
		assert_int_equal(stack.guessed, 0);
		/* But for one on another stack. */
		for (size_t i = 0; i + 1 < stack.count; i++)
			assert_true(frames[i].cfa > frames[i].sp ||
				    (frames[i + 1].exact && with != unwind_backends()[0]));
	}
	/* No room: the leaf end of the same stack. */
	stack.max = 3;
	with->stack(unwinder, &target->input, &stack);
	assert_int_equal(stack.count, 3);
	assert_int_equal(stack.end, UNWIND_NO_ROOM);
	stack.max = 0;
	with->stack(unwinder, &target->input, &stack);
	assert_int_equal(stack.count, 0);
	with->close(unwinder);
	unwind_files_free(files);
}

static void unwind_and_compare(struct stopped *target, const char *wanted, const char *root,
			       bool stack_only)
{
	const struct stopped_map *map = stopped_find(target, target->input.regs.sp);

	assert_non_null(map);
	target->only_start = stack_only ? target->input.regs.sp : 0;
	target->only_end = stack_only ? map->end : 0;
	for (const struct unwind_backend *const *with = unwind_backends(); *with; with++)
		unwind_with(*with, target, wanted, root);
	target->only_start = target->only_end = 0;
}

static void walks_a_spinning_leaf(void **state)
{
	struct stopped target;

	start(&target, leaf_spins, false);
	unwind_and_compare(&target, "leaf_spins " ROOT, "main ", false);
	unwind_and_compare(&target, "leaf_spins " ROOT, "main ", true);
	finish(&target);
}

static void walks_out_of_a_system_call(void **state)
{
	struct stopped target;

	start(&target, leaf_sleeps, false);
	unwind_and_compare(&target, "pause leaf_sleeps " ROOT, "main ", false);
	unwind_and_compare(&target, "pause leaf_sleeps " ROOT, "main ", true);
	finish(&target);
}

static void walks_through_a_signal(void **state)
{
	struct stopped target;

	start(&target, leaf_signals, false);
	unwind_and_compare(&target, "leaf_spins on_signal ", "leaf_signals " ROOT, false);
	unwind_and_compare(&target, "leaf_spins on_signal ", "leaf_signals " ROOT, true);
	finish(&target);
}

static void walks_a_thread(void **state)
{
	struct stopped target;

	start(&target, leaf_spins, true);
	unwind_and_compare(&target, "leaf_spins " ROOT "chain_thread ", "", false);
	finish(&target);
}

/* As in a recording: registers and a copy of the stack, cut at every word, and no memory, or that
 * of a process that runs on. What is found is the leaf end of the whole stack, and the reason is
 * that the copy ends. */
static void cut_with(const struct unwind_backend *with, struct stopped *target, const char *copy,
		     size_t len, bool live)
{
	struct unwind_source source = {.read = live ? stopped_read : NULL,
				       .running = live,
				       .module = stopped_module,
				       .ctx = target};
	struct unwind_files *files = unwind_files_new();
	struct unwinder *unwinder = with->open(files, &source, NULL);
	struct unwind_frame whole[64], frames[64];
	struct unwind_stack all = {.frames = whole, .max = 64},
			    stack = {.frames = frames, .max = 64};
	struct unwind_input input = target->input;
	size_t last = 0;

	assert_non_null(unwinder);
	input.stack_addr = input.regs.sp;
	input.stack = copy;
	input.stack_len = len;
	with->stack(unwinder, &input, &all);
	assert_int_equal(all.end, UNWIND_COMPLETE);
	for (size_t cut = 8; cut < len && stack.count < all.count; cut += 8) {
		input.stack_len = cut;
		with->stack(unwinder, &input, &stack);
		assert_true(stack.count >= last);
		last = stack.count;
		for (size_t i = 0; i < stack.count; i++) {
			assert_int_equal(frames[i].ip, whole[i].ip);
			assert_int_equal(frames[i].sp, whole[i].sp);
		}
		if (stack.count == all.count) {
			assert_int_equal(stack.end, UNWIND_COMPLETE);
			break;
		}
		assert_string_equal(unwind_end_text(stack.end), unwind_end_text(UNWIND_TRUNCATED));
		assert_true(stack.fault + 8 > input.stack_addr + cut);
		assert_int_equal(stack.module, stopped_find(target, frames[last - 1].ip)->id);
	}
	assert_int_equal(stack.count, all.count);
	input.stack_len = 0;
	with->stack(unwinder, &input, &stack);
	assert_int_equal(stack.end, UNWIND_UNREADABLE);
	with->close(unwinder);
	unwind_files_free(files);
}

static void tells_that_the_copy_ends(void **state)
{
	const struct stopped_map *map;
	struct stopped target;
	uint64_t sp;
	char *copy;

	start(&target, leaf_signals, false);
	sp = target.input.regs.sp;
	map = stopped_find(&target, sp);
	assert_non_null(map);
	copy = malloc(map->end - sp);
	assert_int_equal(memory_read(&target.memory, sp, copy, map->end - sp), 0);
	for (const struct unwind_backend *const *with = unwind_backends(); *with; with++) {
		cut_with(*with, &target, copy, map->end - sp, false);
		cut_with(*with, &target, copy, map->end - sp, true);
	}
	free(copy);
	finish(&target);
}

static char *copy_of(struct stopped *target, uint64_t from, uint64_t to)
{
	char *copy = malloc(to - from);

	assert_non_null(copy);
	assert_int_equal(memory_read(&target->memory, from, copy, to - from), 0);
	return copy;
}

/* Only copies: of the handler's stack, of it and the one below, of that in part. */
static void aside_with(const struct unwind_backend *with, struct stopped *target)
{
	struct unwind_source source = {.module = stopped_module, .ctx = target};
	struct unwind_files *files = unwind_files_new();
	struct unwinder *unwinder = with->open(files, &source, NULL);
	uint64_t sp = target->input.regs.sp, end = (uint64_t)(handlers_own + sizeof(handlers_own));
	struct unwind_input input = target->input;
	struct unwind_frame frames[64];
	struct unwind_stack stack = {.frames = frames, .max = 64};
	const struct unwind_frame *last;
	char names[4096];

	assert_non_null(unwinder);
	assert_true(sp > (uint64_t)handlers_own && sp < end);
	input.stack = copy_of(target, sp, end);
	input.stack_addr = sp;
	input.stack_len = end - sp;
	with->stack(unwinder, &input, &stack);
	last = &frames[stack.count - 1];
	name_stack(target, &stack, names, sizeof(names));
	print_message("%s: %s\n", with->name, names);
	assert_string_equal(unwind_end_text(stack.end), unwind_end_text(UNWIND_OTHER_STACK));
	assert_int_equal(stack.module, stopped_find(target, last->ip)->id);
	assert_true(last->exact && stopped_find(target, last->sp));

	input.interrupted.addr = last->sp;
	input.interrupted.len = stopped_find(target, last->sp)->end - last->sp;
	input.interrupted.bytes = copy_of(target, last->sp, last->sp + input.interrupted.len);
	with->stack(unwinder, &input, &stack);
	name_stack(target, &stack, names, sizeof(names));
	assert_non_null(strstr(names, "leaf_spins on_signal "));
	assert_non_null(strstr(names, "leaf_signals_aside " ROOT));
	assert_int_equal(stack.end, UNWIND_COMPLETE);

	input.interrupted.len = 1024;
	with->stack(unwinder, &input, &stack);
	assert_int_equal(stack.end, UNWIND_TRUNCATED);
	free((void *)input.stack);
	free((void *)input.interrupted.bytes);
	with->close(unwinder);
	unwind_files_free(files);
}

static void walks_from_a_handlers_own_stack(void **state)
{
	struct stopped target;

	start(&target, leaf_signals_aside, false);
	unwind_and_compare(&target, "leaf_spins on_signal ", "leaf_signals_aside " ROOT, false);
	for (const struct unwind_backend *const *with = unwind_backends(); *with; with++)
		aside_with(*with, &target);
	finish(&target);
}

static void survive_with(const struct unwind_backend *with, struct stopped *target)
{
	struct unwind_source source = stopped_source(target);
	struct unwind_files *files = unwind_files_new();
	struct unwinder *unwinder = with->open(files, &source, NULL);
	struct unwind_frame frames[64];
	unsigned int seed = 3;

	assert_non_null(unwinder);
	for (int i = 0; i < 300; i++) {
		struct unwind_stack stack = {.frames = frames, .max = 64};
		struct unwind_input input = target->input;
		struct unwind_regs *regs = &input.regs;

		for (int n = 0; n < 4; n++)
			regs->reg[rand_r(&seed) % UNWIND_REGS] = (uint64_t)rand_r(&seed) << 20 | 7;
		regs->ip += (uint64_t)(rand_r(&seed) % 4096) * (i % 3);
		regs->sp = i % 2 ? regs->sp + (uint64_t)(rand_r(&seed) % 4096) : regs->reg[7];
		if (i % 7 == 0)
			regs->ip = i;
		with->stack(unwinder, &input, &stack);
		assert_true(stack.count >= 1 && stack.count <= 64);
		assert_true(frames[0].ip == regs->ip);
		if (i % 7 == 0)
			assert_int_not_equal(stack.end, UNWIND_COMPLETE);
	}
	with->close(unwinder);
	with->close(NULL);
	unwind_files_free(files);
}

static void survives_nonsense(void **state)
{
	struct stopped target;

	start(&target, leaf_spins, false);
	for (const struct unwind_backend *const *with = unwind_backends(); *with; with++)
		survive_with(*with, &target);
	finish(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_a_spinning_leaf),
		cmocka_unit_test(walks_out_of_a_system_call),
		cmocka_unit_test(walks_through_a_signal),
		cmocka_unit_test(walks_from_a_handlers_own_stack),
		cmocka_unit_test(walks_a_thread),
		cmocka_unit_test(tells_that_the_copy_ends),
		cmocka_unit_test(survives_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
