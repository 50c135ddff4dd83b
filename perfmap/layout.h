#ifndef PYPERF_LAYOUT_H
#define PYPERF_LAYOUT_H

#include <linux/types.h>

/*
 * Where the fields that the walker needs lie, for one build of CPython, and where one process has
 * them. Plain data, shared with the BPF program: one map value per process.
 *
 * Sources: 3.13+ `struct _Py_DebugOffsets` of the ELF itself; before, a table per minor version
 * (layout.c). All offsets are bytes; all but single-byte fields are naturally aligned, which
 * py_layout_check() makes sure of. A field that a version lacks is 0.
 */

/* The header of a code object that identifies it: how many of its 8-byte words are hashed. */
#define PY_IDENTITY_WORDS 10

struct py_layout {
	__u8 major, minor;
	__u8 free_threaded;
	__u8 owner_shim; /* frames whose owner is at least this are entry shims; 0: none */
	__u8 key_bare;	 /* 3.6: the thread key is an int by itself, -1 while there is none */
	__u8 has_cframe;
	__u8 frame_tagged; /* 3.14+: low two bits of the executable are a tag */
	/* <= 3.10: frames are PyFrameObjects on the heap, each the run of an eval loop of its own,
	 * and frame_instr is the int f_lasti, which lasti_shift turns into bytes. */
	__u8 frame_objects, lasti_shift;
	/* PyThreadState */
	__u16 tstate_frame;	/* current_frame, or cframe where has_cframe (3.11, 3.12) */
	__u16 cframe_frame;	/* _PyCFrame.current_frame */
	__u16 tstate_thread_id; /* pthread_t */
	/* _PyInterpreterFrame, before 3.11 PyFrameObject; frame_size bytes are read at once */
	__u16 frame_size;
	__u16 frame_code, frame_previous, frame_instr, frame_owner;
	__u16 frame_is_entry; /* 3.11; 0 elsewhere */
	/* Free-threaded 3.14+: which copy of the bytecode the thread runs, an index into the array
	 * that the code object points to; the first is that in the code object itself. */
	__u16 frame_tlbc, code_tlbc;
	/* PyCodeObject; code_size bytes are read at once */
	__u16 code_size;
	__u16 code_units; /* 3.11+: ob_size, how many 2-byte units of code there are */
	__u16 code_name, code_qualname, code_filename, code_firstlineno, code_linetable;
	__u16 code_bytes;  /* 3.11+: co_code_adaptive */
	__u16 code_object; /* before: co_code, a bytes object */
	/* Tuples of names that the bytecode has numbers of: co_names; co_varnames, in 3.11+ those
	 * of all local variables; before, the variables of closures */
	__u16 code_names, code_locals, code_cells, code_frees;
	/* Words of the header that never change and together tell code objects apart, which the
	 * fingerprint hashes; as byte offset / 8. */
	__u8 code_identity[PY_IDENTITY_WORDS];
	/* Up to 3.11 code objects have no version of their own: one that is made where another was
	 * freed may have every part where the other had it. Then name and file tell them apart,
	 * which costs two reads a frame and is done where `reuse` was seen often. */
	__u8 identity_strings;
	/* PyUnicodeObject, PyBytesObject */
	__u16 unicode_length, unicode_state, unicode_ascii_data, unicode_compact_data;
	__u16 unicode_kind_bit; /* where `kind` begins in the state, before compact and ascii */
	__u16 bytes_size, bytes_data;
	__u16 tuple_items; /* behind ob_size, which lies where a bytes object has it */
};

/*
 * How the thread finds its PyThreadState: a pthread TSD slot, by glibc's own description of it (its
 * `_thread_db_*` symbols). The thread has an array of pointers to blocks of slots.
 */
struct py_tsd {
	__s32 self;	  /* from the thread pointer to the thread's pthread_t */
	__s32 blocks;	  /* from the thread pointer to the array of block pointers */
	__u32 block_keys; /* keys per block */
	__u32 block_count;
	__u32 entry_size; /* of one slot */
	__u32 data;	  /* offset of the value in it */
	__u32 tid; /* from the pthread_t to the kernel's number of the thread; 0: not known */
	__u32 reserved;
};

struct py_process {
	struct py_layout layout;
	struct py_tsd tsd;
	/* A thread's PyThreadState is in its slot of a key, or in a thread-local variable. */
	__s32 variable[2]; /* from the thread pointer, the first that is set counts; 0: by the key
			    */
	__u64 tss_key; /* address of the key's int: autoTSSkey._key, in 3.6 autoTLSkey; 0: `key` */
	/* <= 3.11: address of gilstate.tstate_current, which knows sub-interpreters where the
	 * thread's slot does not; 0: not used */
	__u64 current;
	__u64 runtime; /* address of _PyRuntime; in 3.6, which has none, of PyEval_EvalCode() */
	__u32 lineage; /* copied by fork, so children share their parent's code objects */
	__u32 reuse;   /* counted by the walker: an address had one code object after another */
	__u32 key;     /* the key itself, where only that is known */
	__u32 reserved;
};

#ifndef __bpf__
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of one version beside the layout. */
struct py_version {
	int major, minor, micro; /* micro -1 where it is not known */
	bool free_threaded;
	/* Offsets in _PyRuntime, 0 where there is none: autoTSSkey._key, gilstate.tstate_current */
	uint32_t tss_key, current;
	/* Where the threads are listed: interpreters.head in _PyRuntime (0: not known), next and
	 * threads.head in a PyInterpreterState */
	uint32_t interpreters, interp_next, interp_threads;
};

/* PY_VERSION_HEX, as Py_Version and the debug offsets have it. */
struct py_version py_version_of_hex(uint64_t hex);

/* Bytes at _PyRuntime that py_layout_find() wants to see where the version has debug offsets. */
#define PY_DEBUG_OFFSETS_BYTES 1024

/*
 * The layout of a version. `offsets` are the bytes at _PyRuntime (3.13+, may be NULL before). The
 * offsets in *version are filled; tss_key is 0 for a newer version than this was written for.
 * ERR_UNSUPPORTED for a version that is not known, ERR_CORRUPT for debug offsets that cannot be.
 */
int py_layout_find(struct py_version *version, const void *offsets, size_t len,
		   struct py_layout *layout, struct err *err);
/* The part of it that the debug offsets tell. */
int py_layout_of_offsets(struct py_version *version, const void *offsets, size_t len,
			 struct py_layout *layout, struct err *err);
/* Every offset within what is read, and aligned: what the walker relies on. */
int py_layout_check(const struct py_layout *layout, struct err *err);
#endif

#endif
