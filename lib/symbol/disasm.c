#include "symbol/disasm.h"

#ifdef HAVE_CAPSTONE

#include "base/library.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

static struct {
	__typeof__(cs_open) *open;
	__typeof__(cs_close) *close;
	__typeof__(cs_strerror) *strerror;
	__typeof__(cs_malloc) *malloc;
	__typeof__(cs_free) *free;
	__typeof__(cs_disasm_iter) *disasm_iter;
} capstone;

static const struct library_call calls[] = {
	{"cs_open", (void **)&capstone.open},
	{"cs_close", (void **)&capstone.close},
	{"cs_strerror", (void **)&capstone.strerror},
	{"cs_malloc", (void **)&capstone.malloc},
	{"cs_free", (void **)&capstone.free},
	{"cs_disasm_iter", (void **)&capstone.disasm_iter},
};

static const struct {
	uint16_t machine;
	cs_arch arch;
	unsigned int mode;
} machines[] = {
	{EM_X86_64, CS_ARCH_X86, CS_MODE_64},
	{EM_386, CS_ARCH_X86, CS_MODE_32},
	{EM_AARCH64, CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN},
#if CS_API_MAJOR >= 5
	{EM_RISCV, CS_ARCH_RISCV, CS_MODE_RISCV64 | CS_MODE_RISCVC},
#endif
};

static int open_engine(uint16_t machine, csh *engine, struct err *err)
{
	int rc = library_load(CAPSTONE_FILE, calls, sizeof(calls) / sizeof(calls[0]), err);

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		cs_err ret;

		if (machines[i].machine != machine)
			continue;
		ret = capstone.open(machines[i].arch, (cs_mode)machines[i].mode, engine);
		if (ret == CS_ERR_MEM)
			return err_nomem(err);
		if (ret != CS_ERR_OK)
			return err_set(err, ERR_UNSUPPORTED, "capstone cannot disassemble: %s",
				       capstone.strerror(ret));
		return 0;
	}
	return err_set(err, ERR_UNSUPPORTED, "no disassembler for ELF machine %u", machine);
}

int disasm(uint16_t machine, uint64_t addr, const void *code, size_t len,
	   int (*each)(const struct disasm_line *line, void *ctx), void *ctx, struct err *err)
{
	const uint8_t *at = code;
	cs_insn *insn = NULL;
	csh engine;
	int ret = open_engine(machine, &engine, err);

	if (ret)
		return ret;
	insn = capstone.malloc(engine);
	if (!insn)
		ret = err_nomem(err);
	while (!ret && len) {
		char text[sizeof(insn->mnemonic) + 1 + sizeof(insn->op_str)];
		struct disasm_line line = {.addr = addr, .size = 1, .text = text};

		if (capstone.disasm_iter(engine, &at, &len, &addr, insn)) {
			line.size = insn->size;
			snprintf(text, sizeof(text), "%s%s%s", insn->mnemonic,
				 *insn->op_str ? " " : "", insn->op_str);
		} else {
			snprintf(text, sizeof(text), ".byte 0x%02x", *at);
			at++;
			len--;
			addr++;
		}
		ret = each(&line, ctx);
	}
	if (insn)
		capstone.free(insn, 1);
	capstone.close(&engine);
	return ret;
}

#else

int disasm(uint16_t machine, uint64_t addr, const void *code, size_t len,
	   int (*each)(const struct disasm_line *line, void *ctx), void *ctx, struct err *err)
{
	err_set(err, ERR_UNSUPPORTED, "this build has no disassembler");
	err_hint(err, "install libcapstone-dev and build again");
	return ERR_UNSUPPORTED;
}

#endif
