/*
 * Stacks that no unwinder can follow, one after the other for a fifth of a second of CPU time each.
 *
 * nowhere: the stack pointer points to where nothing is. around: frame pointers that lead back to
 * themselves, in code without tables. endless: tables that say that each frame is as large as a
 * return address, over a stack full of them. lying: tables by which the stack does not grow.
 * generated: code that nobody knows of, with junk in the frame pointer. For x86-64;
 * elsewhere it ends with status 77.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SPIN "	mov $2000000, %ecx\n1:	dec %ecx\n	jnz 1b\n"

#if defined(__x86_64__)
__asm__(".text\n"
	".type nowhere, @function\nnowhere:\n"
	"	.cfi_startproc\n"
	"	mov %rsp, %rdx\n	mov $16, %rsp\n" SPIN "	mov %rdx, %rsp\n	ret\n"
	"	.cfi_endproc\n"
	".type around, @function\naround:\n" /* no tables */
	"	push %rbp\n	mov %rsp, %rbp\n	mov %rbp, %rdx\n	mov (%rbp), %rax\n"
	"	mov %rbp, (%rbp)\n" SPIN "	mov %rax, (%rdx)\n	pop %rbp\n	ret\n"
	".type endless, @function\nendless:\n"
	"	.cfi_startproc\n"
	"	mov %rsp, %rdx\n	mov %rdi, %rsp\n"
	"endless_on:\n" SPIN "	mov %rdx, %rsp\n	ret\n"
	"	.cfi_endproc\n"
	".type lying, @function\nlying:\n"
	"	.cfi_startproc\n	.cfi_def_cfa rsp, 0\n	.cfi_offset rip, 0\n" SPIN
	"	ret\n"
	"	.cfi_endproc\n");
void nowhere(void), around(void), endless(uint64_t *stack), lying(void);
extern char endless_on[];

static void generated(void)
{
	/* mov $2000000, %ecx; push %rbp; mov $1, %ebp; dec %ecx; jnz; pop %rbp; ret */
	static const unsigned char code[] = {0xb9, 0x80, 0x84, 0x1e, 0x00, 0x55, 0xbd, 0x01, 0x00,
					     0x00, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
	static void *page;

	if (!page) {
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			exit(1);
		memcpy(page, code, sizeof(code));
	}
	((void (*)(void))page)();
}

static void endless_stack(void)
{
	static uint64_t stack[8192];

	for (size_t i = sizeof(stack) / sizeof(stack[0]); !stack[0] && i-- > 0;)
		stack[i] = (uint64_t)(uintptr_t)endless_on + 1;
	endless(stack);
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(void)
{
	void (*const ways[])(void) = {nowhere, around, endless_stack, lying, generated};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		for (double end = cpu_seconds() + 0.2; cpu_seconds() < end;)
			ways[i]();
	return 0;
}
#else
int main(void)
{
	return 77;
}
#endif
