/* Stacks of a stopped child whose call chain is known by construction. */
#include "unwind/unwind.h"

#include "process/memory.h"
#include "process/proc.h"
#include "symbol/elf.h"

#include <alloca.h>
#include <elf.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
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

struct target {
	pid_t pid, tid;
	struct memory_process process;
	struct memory memory;
	struct unwind_regs regs;
	char path[4096]; /* of the module that was looked up last */
	struct unwind_module found;
	uint64_t wanted;
	uint64_t stack_only; /* nothing below it and nothing beyond its mapping is readable */
	uint64_t stack_end;
};

static int match_map(const struct proc_map *map, void *ctx)
{
	struct target *target = ctx;

	if (target->wanted < map->start || target->wanted >= map->end)
		return 0;
	snprintf(target->path, sizeof(target->path), "%s", map->path);
	target->found = (struct unwind_module){.path = target->path,
					       .start = map->start,
					       .end = map->end,
					       .file_offset = map->pgoff};
	return 1;
}

static int find_module(void *ctx, uint64_t addr, struct unwind_module *module)
{
	struct target *target = ctx;

	target->wanted = addr;
	if (proc_each_map(target->pid, match_map, target, NULL) != 1)
		return -1;
	*module = target->found;
	return 0;
}

static int read_target(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct target *target = ctx;

	if (target->stack_only && (addr < target->stack_only || addr + len > target->stack_end))
		return -1;
	return memory_read(&target->memory, addr, buf, len);
}

static void read_regs(struct target *target)
{
	struct user_regs_struct user;
	struct iovec iov = {.iov_base = &user, .iov_len = sizeof(user)};
	struct unwind_regs *regs = &target->regs;

	assert_int_equal(ptrace(PTRACE_GETREGSET, target->tid, NT_PRSTATUS, &iov), 0);
#if defined(__x86_64__)
	const uint64_t values[] = {user.rax, user.rdx, user.rcx, user.rbx, user.rsi, user.rdi,
				   user.rbp, user.rsp, user.r8,	 user.r9,  user.r10, user.r11,
				   user.r12, user.r13, user.r14, user.r15, user.rip};

	memcpy(regs->reg, values, sizeof(values));
	regs->ip = user.rip;
	regs->sp = user.rsp;
#elif defined(__aarch64__)
	memcpy(regs->reg, user.regs, sizeof(user.regs));
	regs->reg[31] = regs->sp = user.sp;
	regs->reg[32] = regs->ip = user.pc;
#else
	skip();
#endif
}

/* A child that runs the chain down to the leaf, in its main thread or in another, stopped there. */
static void start(struct target *target, void (*leaf)(void), bool thread)
{
	int fds[2], status;
	char byte;

	*target = (struct target){0};
	assert_int_equal(pipe(fds), 0);
	target->pid = fork();
	assert_true(target->pid >= 0);
	if (target->pid == 0) {
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
	target->tid = target->pid;
	if (thread) {
		char path[64], list[256] = "";
		FILE *pipe;

		snprintf(path, sizeof(path), "ls /proc/%d/task", (int)target->pid);
		pipe = popen(path, "r");
		while (fgets(list, sizeof(list), pipe))
			if (atoi(list) != target->pid)
				target->tid = atoi(list);
		pclose(pipe);
		assert_int_not_equal(target->tid, target->pid);
	}
	if (ptrace(PTRACE_SEIZE, target->tid, 0, 0) < 0) {
		kill(target->pid, SIGKILL);
		waitpid(target->pid, NULL, 0);
		print_message("ptrace is not allowed here\n");
		skip();
	}
	assert_int_equal(ptrace(PTRACE_INTERRUPT, target->tid, 0, 0), 0);
	assert_int_equal(waitpid(target->tid, &status, __WALL), target->tid);
	memory_process_init(&target->process, target->pid);
	target->memory = memory_of_process(&target->process);
	read_regs(target);
}

static void finish(struct target *target)
{
	memory_process_fini(&target->process);
	kill(target->pid, SIGKILL);
	if (target->tid != target->pid)
		waitpid(target->tid, NULL, __WALL);
	waitpid(target->pid, NULL, 0);
}

/* Names of the frames, leaf first, "?" for none, each followed by a blank. */
static void name_stack(struct target *target, const uint64_t *ips, size_t count, char *out,
		       size_t size)
{
	*out = '\0';
	for (size_t i = 0; i < count; i++) {
		struct unwind_module module;
		struct elf_symbol symbol = {.name = "?"};
		struct elf_file *elf = NULL;
		uint64_t bias, ip = ips[i] - (i > 0);
		size_t len = strlen(out);

		if (find_module(target, ip, &module) == 0 &&
		    elf_open(&elf, module.path, NULL) == 0 &&
		    elf_bias(elf, module.start, module.file_offset, &bias))
			elf_symbol_at(elf, ip - bias, &symbol);
		snprintf(out + len, size - len, "%s ", symbol.name);
		elf_close(elf);
	}
}

#define ROOT "chain_d chain_alloca chain_b chain_b chain_b chain_b chain_a "

static const struct unwind_backend *backend(void)
{
	const struct unwind_backend *first = unwind_backends()[0];

	if (!first) {
		print_message("no unwinding library is built in\n");
		skip();
	}
	return first;
}

static void unwind_and_compare(struct target *target, const char *wanted, const char *root,
			       bool stack_only)
{
	const struct unwind_backend *with = backend();
	struct unwind_source source = {.read = read_target, .module = find_module, .ctx = target};
	struct unwinder *unwinder;
	uint64_t ips[64];
	char names[4096];
	int complete;
	size_t count;

	if (stack_only) {
		target->wanted = target->regs.sp;
		assert_int_equal(proc_each_map(target->pid, match_map, target, NULL), 1);
		target->stack_only = target->regs.sp;
		target->stack_end = target->found.end;
	}
	unwinder = with->open(&source, NULL);
	assert_non_null(unwinder);
	/* Twice: the second walk goes by the rules that the first one left in the cache. */
	for (int round = 0; round < 2; round++) {
		count = with->stack(unwinder, &target->regs, ips, 64, &complete);
		name_stack(target, ips, count, names, sizeof(names));
		if (round == 0)
			print_message("%s\n", names);
		assert_int_equal(ips[0], target->regs.ip);
		assert_non_null(strstr(names, wanted));
		assert_non_null(strstr(names, root));
		assert_true(complete);
	}
	/* No room: the leaf end of the same stack. */
	count = with->stack(unwinder, &target->regs, ips, 3, &complete);
	assert_int_equal(count, 3);
	assert_false(complete);
	assert_int_equal(with->stack(unwinder, &target->regs, ips, 0, &complete), 0);
	with->close(unwinder);
	target->stack_only = 0;
}

static void walks_a_spinning_leaf(void **state)
{
	struct target target;

	start(&target, leaf_spins, false);
	unwind_and_compare(&target, "leaf_spins " ROOT, "main ", false);
	unwind_and_compare(&target, "leaf_spins " ROOT, "main ", true);
	finish(&target);
}

static void walks_out_of_a_system_call(void **state)
{
	struct target target;

	start(&target, leaf_sleeps, false);
	unwind_and_compare(&target, "pause leaf_sleeps " ROOT, "main ", false);
	unwind_and_compare(&target, "pause leaf_sleeps " ROOT, "main ", true);
	finish(&target);
}

static void walks_through_a_signal(void **state)
{
	struct target target;

	start(&target, leaf_signals, false);
	unwind_and_compare(&target, "leaf_spins on_signal ", "leaf_signals " ROOT, false);
	unwind_and_compare(&target, "leaf_spins on_signal ", "leaf_signals " ROOT, true);
	finish(&target);
}

static void walks_a_thread(void **state)
{
	struct target target;

	start(&target, leaf_spins, true);
	unwind_and_compare(&target, "leaf_spins " ROOT "chain_thread ", "", false);
	finish(&target);
}

static void survives_nonsense(void **state)
{
	const struct unwind_backend *with = backend();
	struct unwind_source source = {.read = read_target, .module = find_module};
	struct target target;
	struct unwinder *unwinder;
	uint64_t ips[64];
	unsigned int seed = 3;

	start(&target, leaf_spins, false);
	source.ctx = &target;
	unwinder = with->open(&source, NULL);
	for (int i = 0; i < 300; i++) {
		struct unwind_regs regs = target.regs;
		int complete;
		size_t count;

		for (int n = 0; n < 4; n++)
			regs.reg[rand_r(&seed) % 33] = (uint64_t)rand_r(&seed) << 20 | 7;
		regs.ip += (uint64_t)(rand_r(&seed) % 4096) * (i % 3);
		regs.sp = i % 2 ? regs.sp + (uint64_t)(rand_r(&seed) % 4096) : regs.reg[7];
		if (i % 7 == 0)
			regs.ip = i;
		count = with->stack(unwinder, &regs, ips, 64, &complete);
		assert_true(count >= 1 && count <= 64);
		assert_true(ips[0] == regs.ip);
		if (i % 7 == 0)
			assert_false(complete);
	}
	with->close(unwinder);
	with->close(NULL);
	finish(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_a_spinning_leaf),
		cmocka_unit_test(walks_out_of_a_system_call),
		cmocka_unit_test(walks_through_a_signal),
		cmocka_unit_test(walks_a_thread),
		cmocka_unit_test(survives_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
