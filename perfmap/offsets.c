#include "perfmap/layout.h"

#include <string.h>

/*
 * The layout as the interpreter describes it (3.13+): `struct _Py_DebugOffsets`
 * (Include/internal/pycore_debug_offsets.h) lies at the start of _PyRuntime, a sequence of 8-byte
 * words after its cookie, in groups of which each begins with a structure's size.
 *
 * The sequence itself changes with every minor version: groups grow at their ends and new ones come
 * between. What holds is how the fields of one structure lie to one another in memory (co_name
 * directly after co_filename, a string's state directly after its hash), which is so particular
 * that each group is found by it, in versions that are not out yet too.
 */

#define COOKIE "xdebugpy"

struct table {
	uint64_t words[PY_DEBUG_OFFSETS_BYTES / 8];
	size_t count;
};

/* Fixed so far: the cookie, the version, free-threaded; then two groups. */
enum {
	WORD_FREE_THREADED = 2,
	WORD_RUNTIME_SIZE = 3,
	WORD_RUNTIME_INTERPRETERS = 5,
	WORD_INTERPRETER_SIZE = 6,
	WORD_INTERPRETER_NEXT = 8,
	WORD_INTERPRETER_THREADS = 9,
	WORD_GROUPS = 10, /* the others are looked for from here on */
};

enum {
	THREAD_SIZE,
	THREAD_PREV,
	THREAD_NEXT,
	THREAD_INTERP,
	THREAD_FRAME,
	THREAD_WORDS,
	THREAD_ID = THREAD_WORDS, /* up to 3.14; then thread_id, native_thread_id */
};

static bool is_thread(const uint64_t *w)
{
	return w[THREAD_SIZE] >= 128 && w[THREAD_SIZE] <= 1u << 16 &&
	       w[THREAD_NEXT] == w[THREAD_PREV] + 8 && w[THREAD_INTERP] == w[THREAD_NEXT] + 8 &&
	       w[THREAD_FRAME] > w[THREAD_INTERP] && w[THREAD_FRAME] + 8 <= w[THREAD_SIZE] &&
	       w[THREAD_FRAME] % 8 == 0;
}

enum {
	FRAME_SIZE,
	FRAME_PREVIOUS,
	FRAME_CODE,
	FRAME_INSTR,
	FRAME_LOCALS,
	FRAME_OWNER,
	FRAME_WORDS,
	FRAME_TLBC = 7 /* 3.14+ */
};

/* The locals are an array at the end, of one element as far as the compiler knows. */
static bool is_frame(const uint64_t *w)
{
	for (int i = FRAME_PREVIOUS; i <= FRAME_INSTR; i++)
		if (w[i] % 8 || w[i] >= w[FRAME_LOCALS])
			return false;
	return w[FRAME_SIZE] <= 256 && w[FRAME_LOCALS] + 8 == w[FRAME_SIZE] &&
	       w[FRAME_OWNER] < w[FRAME_LOCALS] && w[FRAME_PREVIOUS] != w[FRAME_CODE] &&
	       w[FRAME_PREVIOUS] != w[FRAME_INSTR] && w[FRAME_CODE] != w[FRAME_INSTR];
}

enum {
	CODE_SIZE,
	CODE_FILENAME,
	CODE_NAME,
	CODE_QUALNAME,
	CODE_LINETABLE,
	CODE_FIRSTLINENO,
	CODE_ARGCOUNT,
	CODE_LOCALSNAMES,
	CODE_LOCALSKINDS,
	CODE_BYTES,
	CODE_WORDS,
	CODE_TLBC = CODE_WORDS /* 3.14+ */
};

static bool is_code(const uint64_t *w)
{
	return w[CODE_SIZE] <= 1024 && w[CODE_NAME] == w[CODE_FILENAME] + 8 &&
	       w[CODE_QUALNAME] == w[CODE_NAME] + 8 && w[CODE_LINETABLE] == w[CODE_QUALNAME] + 8 &&
	       w[CODE_LOCALSKINDS] == w[CODE_LOCALSNAMES] + 8 && w[CODE_FILENAME] % 8 == 0 &&
	       w[CODE_FIRSTLINENO] % 4 == 0 && w[CODE_FIRSTLINENO] < w[CODE_SIZE] &&
	       w[CODE_BYTES] > w[CODE_LINETABLE] && w[CODE_BYTES] < w[CODE_SIZE];
}

enum {
	BYTES_SIZE,
	BYTES_LENGTH,
	BYTES_DATA,
	TEXT_SIZE,
	TEXT_STATE,
	TEXT_LENGTH,
	TEXT_ASCII_SIZE,
	TEXT_WORDS
};

/* PyBytesObject: ob_size, ob_shash, ob_sval. PyUnicodeObject: length, hash, state, then
 * utf8_length, utf8 and data. */
static bool is_text(const uint64_t *w)
{
	return w[BYTES_DATA] == w[BYTES_LENGTH] + 16 && w[BYTES_SIZE] == w[BYTES_DATA] + 8 &&
	       w[TEXT_LENGTH] == w[BYTES_LENGTH] && w[TEXT_STATE] == w[TEXT_LENGTH] + 16 &&
	       w[TEXT_ASCII_SIZE] == w[TEXT_STATE] + 8 && w[TEXT_SIZE] == w[TEXT_ASCII_SIZE] + 24 &&
	       w[TEXT_SIZE] <= 256;
}

enum { TUPLE_SIZE, TUPLE_ITEMS, TUPLE_LENGTH, TUPLE_WORDS };

/* The items are an array at the end, of one element as far as the compiler knows; from 3.14 on a
 * hash lies before them. */
static bool is_tuple(const uint64_t *w)
{
	return w[TUPLE_SIZE] <= 64 && w[TUPLE_SIZE] == w[TUPLE_ITEMS] + 8 &&
	       (w[TUPLE_ITEMS] == w[TUPLE_LENGTH] + 8 || w[TUPLE_ITEMS] == w[TUPLE_LENGTH] + 16) &&
	       w[TUPLE_LENGTH] % 8 == 0;
}

/* The first group from *at on, which is moved behind it; NULL where there is none. */
static const uint64_t *find_group(const struct table *table, size_t *at, size_t words,
				  bool (*is_group)(const uint64_t *))
{
	for (size_t i = *at; i + words <= table->count; i++) {
		if (is_group(table->words + i)) {
			*at = i + words;
			return table->words + i;
		}
	}
	return NULL;
}

static uint16_t round_up(unsigned int end)
{
	return (uint16_t)((end + 7) & ~7u);
}

static void read_lists(const struct table *table, struct py_version *version)
{
	const uint64_t *w = table->words;

	if (w[WORD_RUNTIME_INTERPRETERS] >= w[WORD_RUNTIME_SIZE] ||
	    w[WORD_RUNTIME_SIZE] > 1u << 28 || w[WORD_INTERPRETER_SIZE] > 1u << 28 ||
	    w[WORD_INTERPRETER_NEXT] >= w[WORD_INTERPRETER_SIZE] ||
	    w[WORD_INTERPRETER_THREADS] >= w[WORD_INTERPRETER_SIZE])
		return;
	version->interpreters = (uint32_t)w[WORD_RUNTIME_INTERPRETERS];
	version->interp_next = (uint32_t)w[WORD_INTERPRETER_NEXT];
	version->interp_threads = (uint32_t)w[WORD_INTERPRETER_THREADS];
}

/* Its pthread_t; 0 where something else has come between. */
static uint16_t thread_id(const uint64_t *w)
{
	return w[THREAD_ID + 1] == w[THREAD_ID] + 8 && w[THREAD_ID] % 8 == 0 &&
			       w[THREAD_ID] > w[THREAD_FRAME] && w[THREAD_ID] + 16 <= w[THREAD_SIZE]
		       ? (uint16_t)w[THREAD_ID]
		       : 0;
}

static void read_layout(const struct py_version *version, const uint64_t *thread,
			const uint64_t *frame, const uint64_t *code, const uint64_t *tuple,
			const uint64_t *text, struct py_layout *layout)
{
	*layout = (struct py_layout){
		.owner_shim = 3,
		.tstate_frame = (uint16_t)thread[THREAD_FRAME],
		.tstate_thread_id = version->minor <= 14 ? thread_id(thread) : 0,
		.frame_previous = (uint16_t)frame[FRAME_PREVIOUS],
		.frame_code = (uint16_t)frame[FRAME_CODE],
		.frame_instr = (uint16_t)frame[FRAME_INSTR],
		.frame_owner = (uint16_t)frame[FRAME_OWNER],
		.code_units = (uint16_t)text[BYTES_LENGTH], /* PyVarObject.ob_size */
		.code_filename = (uint16_t)code[CODE_FILENAME],
		.code_name = (uint16_t)code[CODE_NAME],
		.code_qualname = (uint16_t)code[CODE_QUALNAME],
		.code_linetable = (uint16_t)code[CODE_LINETABLE],
		.code_firstlineno = (uint16_t)code[CODE_FIRSTLINENO],
		.code_bytes = (uint16_t)code[CODE_BYTES],
		.code_names = (uint16_t)(text[BYTES_LENGTH] + 16), /* behind co_consts */
		.code_locals = (uint16_t)code[CODE_LOCALSNAMES],
		.tuple_items = tuple ? (uint16_t)tuple[TUPLE_ITEMS] : 0,
		.bytes_size = (uint16_t)text[BYTES_LENGTH],
		.bytes_data = (uint16_t)text[BYTES_DATA],
		.unicode_state = (uint16_t)text[TEXT_STATE],
		.unicode_length = (uint16_t)text[TEXT_LENGTH],
		.unicode_ascii_data = (uint16_t)text[TEXT_ASCII_SIZE],
	};
	/* From 3.14 on executables are tagged references, and without the GIL threads run copies of
	 * the bytecode, and share a string's flags by bytes. */
	layout->frame_tagged = version->minor >= 14;
	layout->free_threaded = version->free_threaded;
	layout->unicode_kind_bit = 2;
	if (version->free_threaded && version->minor >= 14) {
		layout->unicode_kind_bit = 8;
		layout->frame_tlbc = (uint16_t)frame[FRAME_TLBC];
		layout->code_tlbc = (uint16_t)code[CODE_TLBC];
	}
	/* PyCompactUnicodeObject adds utf8_length and utf8. */
	layout->unicode_compact_data = layout->unicode_ascii_data + 16;
	layout->frame_size = round_up(layout->frame_owner + 1u);
	if (layout->frame_size < layout->frame_instr + 8)
		layout->frame_size = round_up(layout->frame_instr + 8u);
	layout->code_size = round_up(layout->code_linetable + 8u);

	uint8_t ob_size = (uint8_t)(layout->code_units / 8);
	const uint8_t identity[PY_IDENTITY_WORDS] = {
		ob_size,
		(uint8_t)(ob_size + 1), /* co_consts */
		(uint8_t)(ob_size + 2), /* co_names */
		(uint8_t)(layout->code_firstlineno / 8),
		(uint8_t)(code[CODE_LOCALSNAMES] / 8 - 1), /* co_nfreevars, co_version */
		(uint8_t)(code[CODE_LOCALSNAMES] / 8),
		(uint8_t)(layout->code_filename / 8),
		(uint8_t)(layout->code_name / 8),
		(uint8_t)(layout->code_qualname / 8),
		(uint8_t)(layout->code_linetable / 8),
	};
	memcpy(layout->code_identity, identity, sizeof(identity));
}

int py_layout_of_offsets(struct py_version *version, const void *offsets, size_t len,
			 struct py_layout *layout, struct err *err)
{
	const uint64_t *thread = NULL, *frame = NULL, *code = NULL, *tuple, *text = NULL;
	struct table table = {.count = len / 8};
	size_t at = WORD_GROUPS, after_code;

	if (table.count > sizeof(table.words) / 8)
		table.count = sizeof(table.words) / 8;
	if (table.count)
		memcpy(table.words, offsets, 8 * table.count);
	if (table.count >= WORD_GROUPS && memcmp(table.words, COOKIE, 8) == 0) {
		thread = find_group(&table, &at, THREAD_WORDS + 2, is_thread);
		frame = find_group(&table, &at, FRAME_WORDS, is_frame);
		code = find_group(&table, &at, CODE_WORDS, is_code);
		after_code = at;
		text = find_group(&table, &at, TEXT_WORDS, is_text);
	}
	if (!thread || !frame || !code || !text)
		return err_set(err, ERR_CORRUPT,
			       "CPython %d.%d does not describe its structures (no debug offsets "
			       "that make sense)",
			       version->major, version->minor);
	version->free_threaded = table.words[WORD_FREE_THREADED] != 0;
	read_lists(&table, version);
	tuple = find_group(&table, &after_code, TUPLE_WORDS, is_tuple);
	read_layout(version, thread, frame, code, tuple, text, layout);
	return 0;
}
