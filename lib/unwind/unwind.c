#include "unwind/unwind.h"

#include "arch/arch.h"
#include "ring/record.h"
#include "unwind/backends.h"

#include <string.h>

const struct unwind_backend *const *unwind_backends(void)
{
	static const struct unwind_backend *const backends[] = {
		&unwind_by_table,
#ifdef HAVE_UNWIND
		&unwind_by_libunwind,
#endif
		&unwind_by_libdw,
		NULL,
	};

	return backends;
}

const struct unwind_backend *unwind_backend_by_name(const char *name)
{
	for (const struct unwind_backend *const *each = unwind_backends(); *each; each++)
		if (strcmp((*each)->name, name) == 0)
			return *each;
	return NULL;
}

const char *unwind_end_text(enum unwind_end end)
{
	static const char *const texts[UNWIND_ENDS] = {
		[UNWIND_COMPLETE] = "complete",
		[UNWIND_NO_ROOM] = "too many frames",
		[UNWIND_TRUNCATED] = "the copy of the stack ends",
		[UNWIND_OTHER_STACK] = "no copy of the stack that a signal interrupted",
		[UNWIND_NO_TABLES] = "no unwind tables",
		[UNWIND_UNMAPPED] = "nothing is mapped at the address",
		[UNWIND_UNREADABLE] = "memory cannot be read",
		[UNWIND_BAD_RULE] = "unusable unwind tables",
		[UNWIND_LOOP] = "the stack leads back to itself",
		[UNWIND_NO_MEMORY] = "out of memory",
	};

	return (size_t)end < UNWIND_ENDS ? texts[end] : "unknown";
}

int unwind_of_sample(const struct arch *arch, uint64_t regs_mask,
		     const struct record_sample *sample, struct unwind_input *input)
{
	const uint64_t *value = sample->regs_user;
	uint64_t need = 1ull << arch->perf_ip | 1ull << arch->perf_sp;

	*input = (struct unwind_input){0};
	if (sample->regs_user_abi == PERF_SAMPLE_REGS_ABI_NONE || !value)
		return ERR_NOT_FOUND;
	if (sample->regs_user_abi != PERF_SAMPLE_REGS_ABI_64 || (regs_mask & need) != need)
		return ERR_UNSUPPORTED;
	for (unsigned int perf = 0; perf < 64; perf++) {
		if (!(regs_mask >> perf & 1))
			continue;
		if (perf < arch->perf_regs && arch->perf_to_dwarf[perf] >= 0 &&
		    arch->perf_to_dwarf[perf] < UNWIND_REGS)
			input->regs.reg[arch->perf_to_dwarf[perf]] = *value;
		if ((int)perf == arch->perf_ip)
			input->regs.ip = *value;
		if ((int)perf == arch->perf_sp)
			input->regs.sp = *value;
		value++;
	}
	input->stack = sample->stack_user;
	input->stack_len = sample->stack_user ? sample->stack_user_size : 0;
	input->stack_addr = input->regs.sp;
	return 0;
}
