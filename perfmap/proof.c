#include "perfmap/proof.h"

#include "base/intern.h"
#include "perfmap/code.h"
#include "perfmap/discover.h"
#include "perfmap/frames.h"
#include "perfmap/walk.h"

#include <string.h>

#define PROOF_FRAMES 256
#define PROOF_NAMES 16 /* outermost frames whose names are read */
#define PROOF_TRIES 20 /* a running thread's frames change while they are read */

/* What the tables say, as the sources call it; from minor version `since` to `until`. */
#define LAYOUT(field) offsetof(struct py_layout, field), true
#define VERSION(field) offsetof(struct py_version, field), false
static const struct {
	uint8_t since, until;
	const char *type, *path;
	size_t field;
	bool in_layout; /* 16 bits of it, else 32 of the version */
} fields[] = {
	{6, 10, "PyThreadState", "frame", LAYOUT(tstate_frame)},
	{11, 12, "PyThreadState", "cframe", LAYOUT(tstate_frame)},
	{11, 12, "_PyCFrame", "current_frame", LAYOUT(cframe_frame)},
	{6, 12, "PyThreadState", "thread_id", LAYOUT(tstate_thread_id)},
	{6, 10, "PyFrameObject", "f_back", LAYOUT(frame_previous)},
	{6, 10, "PyFrameObject", "f_code", LAYOUT(frame_code)},
	{6, 10, "PyFrameObject", "f_lasti", LAYOUT(frame_instr)},
	{11, 12, "_PyInterpreterFrame", "previous", LAYOUT(frame_previous)},
	{11, 12, "_PyInterpreterFrame", "f_code", LAYOUT(frame_code)},
	{11, 12, "_PyInterpreterFrame", "prev_instr", LAYOUT(frame_instr)},
	{11, 11, "_PyInterpreterFrame", "is_entry", LAYOUT(frame_is_entry)},
	{11, 12, "_PyInterpreterFrame", "owner", LAYOUT(frame_owner)},
	{6, 12, "PyCodeObject", "co_firstlineno", LAYOUT(code_firstlineno)},
	{6, 12, "PyCodeObject", "co_filename", LAYOUT(code_filename)},
	{6, 12, "PyCodeObject", "co_name", LAYOUT(code_name)},
	{11, 12, "PyCodeObject", "co_qualname", LAYOUT(code_qualname)},
	{6, 9, "PyCodeObject", "co_lnotab", LAYOUT(code_linetable)},
	{10, 12, "PyCodeObject", "co_linetable", LAYOUT(code_linetable)},
	{11, 12, "PyCodeObject", "co_code_adaptive", LAYOUT(code_bytes)},
	{6, 12, "PyASCIIObject", "length", LAYOUT(unicode_length)},
	{6, 12, "PyASCIIObject", "state", LAYOUT(unicode_state)},
	{6, 12, "PyBytesObject", "ob_sval", LAYOUT(bytes_data)},
	{7, 11, "_PyRuntimeState", "gilstate.autoTSSkey._key", VERSION(tss_key)},
	{12, 14, "_PyRuntimeState", "autoTSSkey._key", VERSION(tss_key)},
	{7, 11, "_PyRuntimeState", "gilstate.tstate_current", VERSION(current)},
	{7, 12, "_PyRuntimeState", "interpreters.head", VERSION(interpreters)},
	{6, 10, "PyInterpreterState", "tstate_head", VERSION(interp_threads)},
	{11, 12, "PyInterpreterState", "threads.head", VERSION(interp_threads)},
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static uint32_t in_table(const struct py_version *version, const struct py_layout *layout, size_t i)
{
	uint16_t narrow;
	uint32_t wide;

	if (fields[i].in_layout) {
		memcpy(&narrow, (const char *)layout + fields[i].field, sizeof(narrow));
		return narrow;
	}
	memcpy(&wide, (const char *)version + fields[i].field, sizeof(wide));
	return wide;
}

int py_prove_by_types(struct elf_file *elf, const struct py_version *version,
		      const struct py_layout *layout, size_t *proved, struct err *err)
{
	struct elf_member members[FIELDS];
	size_t of[FIELDS], count = 0;
	struct elf_symbol eval;

	*proved = 0;
	for (size_t i = 0; i < FIELDS; i++)
		if (version->minor >= fields[i].since && version->minor <= fields[i].until) {
			members[count] = (struct elf_member){.type = fields[i].type,
							     .path = fields[i].path};
			of[count++] = i;
		}
	/* Its file includes the header of every type. */
	if (!count || !elf_symbol_by_name(elf, "PyEval_EvalCode", &eval))
		return 0;
	*proved = elf_members(elf, eval.vaddr, members, count);
	for (size_t i = 0; i < count; i++)
		if (members[i].known && members[i].offset != in_table(version, layout, of[i]))
			return err_set(err, ERR_UNSUPPORTED,
				       "this CPython %d.%d is not built as others are: %s.%s is at "
				       "%llu, not at %u",
				       version->major, version->minor, members[i].type,
				       members[i].path, (unsigned long long)members[i].offset,
				       in_table(version, layout, of[i]));
	return 0;
}

struct proof {
	const struct memory *memory;
	const struct py_process *process;
	struct py_codes *codes;
	unsigned int good, bad;
};

static bool has_names(struct proof *proof, const struct py_raw_frame *frame)
{
	const uint8_t needed = PY_CODE_MISSING_NAME | PY_CODE_MISSING_FILENAME;
	const struct py_code *code;
	int index;

	if (py_codes_read(proof->codes, proof->memory, &proof->process->layout, 0, frame->code,
			  frame->fingerprint, NULL) < 0)
		return false;
	index = py_codes_find(proof->codes, 0, frame->code, frame->fingerprint);
	code = py_codes_get(proof->codes, index);
	return code && !(code->missing & needed);
}

static bool whole(struct proof *proof, const struct py_raw_frame *frames, unsigned int count,
		  int status)
{
	if (status != PY_WALK_OK && !(status == PY_WALK_TRUNCATED && count == PROOF_FRAMES))
		return false;
	/* The outermost frame is the first of an eval loop's run. */
	if (status == PY_WALK_OK && !(frames[count - 1].instr & PY_FRAME_ENTRY))
		return false;
	for (unsigned int i = count > PROOF_NAMES ? count - PROOF_NAMES : 0; i < count; i++)
		if (!has_names(proof, &frames[i]))
			return false;
	return true;
}

/* A thread that runs Python has a frame, and its state names it. */
static bool find_thread(const struct proof *proof, uint64_t tstate, uint64_t *thread_pointer)
{
	const struct py_layout *layout = &proof->process->layout;
	uint64_t frame = 0, thread = 0;

	if (memory_read(proof->memory, tstate + layout->tstate_frame, &frame, sizeof(frame)) ||
	    (layout->has_cframe && frame &&
	     memory_read(proof->memory, frame + layout->cframe_frame, &frame, sizeof(frame))) ||
	    memory_read(proof->memory, tstate + layout->tstate_thread_id, &thread, sizeof(thread)))
		return false;
	*thread_pointer = thread - (uint64_t)(int64_t)proof->process->tsd.self;
	return frame && thread;
}

/* As the walker does, from the thread to its key's slot and on. */
static int try_thread(uint64_t tstate, void *ctx)
{
	struct py_raw_frame frames[PROOF_FRAMES];
	struct proof *proof = ctx;
	uint64_t thread_pointer;
	unsigned int count;
	int status;

	if (!find_thread(proof, tstate, &thread_pointer))
		return 0;
	status = py_walk(proof->process, proof->memory, thread_pointer, frames, PROOF_FRAMES,
			 &count);
	if (status == PY_WALK_OK && !count)
		return 0;
	if (whole(proof, frames, count, status))
		proof->good++;
	else
		proof->bad++;
	return proof->good != 0;
}

/* In 3.6 nothing that every build exports lists the threads; the one that runs is known. */
static int each_thread(const struct py_version *version, struct proof *proof)
{
	uint64_t tstate = 0;

	if (version->interpreters)
		return py_each_thread(version, proof->memory, proof->process->runtime, try_thread,
				      proof);
	if (!proof->process->current ||
	    memory_read(proof->memory, proof->process->current, &tstate, sizeof(tstate)) || !tstate)
		return 0;
	return try_thread(tstate, proof);
}

enum py_proof py_prove_by_frames(const struct memory *memory, const struct py_process *process)
{
	struct py_version version = {.major = process->layout.major,
				     .minor = process->layout.minor};
	struct proof proof = {.memory = memory, .process = process};
	enum py_proof result = PY_PROOF_NONE;
	struct py_layout table;
	struct intern strings;

	if (py_layout_find(&version, NULL, 0, &table, NULL) < 0)
		return PY_PROOF_GOOD;
	intern_init(&strings);
	proof.codes = py_codes_new(&strings);
	for (int i = 0; proof.codes && i < PROOF_TRIES; i++) {
		result = each_thread(&version, &proof) ? PY_PROOF_GOOD
			 : proof.bad		       ? PY_PROOF_BAD
						       : PY_PROOF_NONE;
		if (result != PY_PROOF_BAD)
			break;
	}
	py_codes_free(proof.codes);
	intern_fini(&strings);
	return result;
}
