#include "unwind/pointers.h"

#include "arch/arch.h"
#include "symbol/elf.h"
#include "unwind/cfi.h"

/* Without frame pointers 0 to 5% of functions count from one, 25% where exceptions are many; with
 * them 80 to 90%. */
#define SHARE 0.6
#define ASKED_MAX 512u
#define BYTES_MIN 24u

static void ask(struct cfi *cfi, struct rules *rules, const struct arch *arch, uint64_t vaddr,
		uint32_t *asked, uint32_t *with)
{
	uint32_t id = cfi_rule(cfi, rules, vaddr);
	const struct rule *rule = rule_is(id) ? rules_get(rules, id) : NULL;

	/* Expressions describe procedure linkage tables and signals. */
	if (!rule || rule->cfa_expr)
		return;
	++*asked;
	*with += rule->cfa_reg == arch->dwarf_fp;
}

bool pointers_throughout(struct elf_file *elf)
{
	const struct arch *arch = arch_by_machine(elf_machine(elf));
	uint32_t count = elf_function_count(elf), asked = 0, with = 0;
	struct cfi *cfi = arch ? cfi_open(elf) : NULL;
	uint64_t vaddr, start, size;
	struct rules rules;

	if (!cfi)
		return false;
	rules_init(&rules);
	for (uint32_t i = 0; i < count; i += 1 + count / ASKED_MAX)
		if (elf_function_start(elf, i, &vaddr) &&
		    elf_function_range(elf, vaddr, &start, &size) && size >= BYTES_MIN)
			ask(cfi, &rules, arch, start + size / 2, &asked, &with);
	rules_fini(&rules);
	cfi_close(cfi);
	return asked && with >= SHARE * asked;
}
