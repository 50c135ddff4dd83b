#ifndef PYPERF_FRAMES_H
#define PYPERF_FRAMES_H

#include <linux/types.h>

/*
 * What the walker sends: the payload (PERF_SAMPLE_RAW) of the BPF_OUTPUT event that lies directly
 * before the sample it belongs to, in the same ring. Shared by the BPF program, the recorder and
 * the reader; documented for others in lib/data/FORMAT.md. Host byte order, 8-aligned fields.
 *
 * Frames are leaf first. A code object is named by (lineage, address, fingerprint): the address
 * alone is reused when code objects are freed. The lineage numbers a process and all that were
 * forked from it since its interpreter was found.
 */

#define PY_RAW_FRAMES 0x314d5246u /* "FRM1": struct py_raw_frames */
#define PY_RAW_CODE 0x31444f43u	  /* "COD1": struct py_raw_code */

/* Deeper stacks are cut at the root end and marked. All that CPython allows by itself fits (its
 * recursion limit is 1,000); four times as many would still fit a record, but not the verifier of
 * kernels without bpf_loop(). */
#define PY_FRAMES_MAX 1024

struct py_raw_frame {
	__u64 code;	   /* address of the PyCodeObject */
	__u32 fingerprint; /* of its fields: py_code_fingerprint() in walk.h */
	__u32 instr;	   /* byte offset of the executing instruction in co_code, PY_INSTR_MASK;
			      and PY_FRAME_* flags */
};
#define PY_INSTR_MASK 0x0fffffffu
/* The instruction pointer did not lie in the code: the frame is there, its line is not known. */
#define PY_FRAME_NO_INSTR 0x10000000u
/* Root-most frame of the run that belongs to one native eval frame (every frame up to 3.10,
 * is_entry in 3.11, the frame above an entry shim from 3.12 on). */
#define PY_FRAME_ENTRY 0x80000000u

enum py_walk_status {
	PY_WALK_OK = 0,	       /* reached the end of the frame chain */
	PY_WALK_TRUNCATED = 1, /* more frames than fit */
	PY_WALK_FAULT = 2,     /* memory could not be read: what is there is sound, the rest lost */
	PY_WALK_NO_THREAD = 3, /* the thread has no PyThreadState: not a Python thread (yet) */
	PY_WALK_BAD = 4,       /* a pointer made no sense */
};

struct py_raw_frames {
	__u32 magic;  /* PY_RAW_FRAMES */
	__u16 status; /* enum py_walk_status */
	__u16 count;
	__u32 lineage;
	__u32 flags;		      /* PY_FRAMES_* */
	struct py_raw_frame frames[]; /* count */
};
/* User code was interrupted, and held the thread state in a register where CPython's jitted code
 * keeps it: if that code is in no file, then it is the interpreter's. */
#define PY_FRAMES_STATE_HELD 1u

/*
 * A code object, sent once when first seen, before the frames that name it. Strings are the bytes
 * of the PyUnicode objects: kind 1 Latin-1, 2 UCS-2, 4 UCS-4; `len` counts units,
 * at most PY_STRING_BYTES_MAX bytes of them: a string that fills these may have been cut. What
 * could not be read has PY_CODE_MISSING_* set, and the recorder is asked to read it from the
 * process.
 */
#define PY_CODE_MISSING_NAME 1u
#define PY_CODE_MISSING_QUALNAME 2u
#define PY_CODE_MISSING_FILENAME 4u
#define PY_CODE_MISSING_TABLE 8u

struct py_raw_string {
	__u8 kind;
	__u8 reserved[3];
	__u32 len;
};

struct py_raw_code {
	__u32 magic; /* PY_RAW_CODE */
	__u32 lineage;
	__u64 code;
	__u32 fingerprint;
	__u32 firstlineno;
	__u8 minor; /* of CPython 3.x: says the line table's format */
	__u8 missing;
	__u16 reserved;
	__u32 pid; /* that it was read from */
	struct py_raw_string name, qualname, filename;
	__u32 table_len;
	__u32 bytecode_len; /* 0: could not be read, or older recordings */
	/* then the bytes of name, qualname, filename, the line table and the bytecode, each padded
	 * to 8 */
};

/*
 * The top of the stack of the thread that was interrupted, of any program, sent before what the
 * above say of the sample. Only from the walker to the recorder, which unwinds it: in no file.
 */
#define PY_RAW_STACK 0x314b5453u /* "STK1": struct py_raw_stack */
/* "STI1": the same of the stack that a signal interrupted, before that of its handler. */
#define PY_RAW_INTERRUPTED 0x31495453u

struct py_raw_stack {
	__u32 magic;
	__u32 thread;	   /* by which py_engine_learn_stack() knows it */
	__u64 sp;	   /* of the first byte that follows */
	__u64 handler_end; /* what follows is a signal handler's own stack, up to here; 0: it is not
			    */
};
#define PY_STACK_BYTES_MAX 61440 /* a record ends at 64 kB */

/* What is known of a thread's stacks; 0: nothing. */
struct py_stack {
	__u64 base; /* where it ends */
	/* While a handler runs on a stack of its own: where the interrupted stack pointer is saved.
	 */
	__u64 saved_sp;
};

#define PY_STRING_BYTES_MAX 1024    /* of each string; longer ones are cut */
#define PY_TABLE_BYTES_MAX 16384    /* longer line tables are MISSING_TABLE */
#define PY_BYTECODE_BYTES_MAX 32768 /* longer ones are left to the recorder, too */

#endif
