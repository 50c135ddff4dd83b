#ifndef PYPERF_LAYOUT_H
#define PYPERF_LAYOUT_H

#include <linux/types.h>

/*
 * Where the fields that the walker needs lie, for one build of CPython, and where one process has
 * them. Plain data, shared with the BPF program: one map value per process.
 *
 * Sources: 3.13+ `struct _Py_DebugOffsets` of the ELF itself; before, a table per minor version
 * (layout.c) measured on real builds and checked against DWARF where there is any.
 */
struct py_layout {
	__u8 major, minor;
	__u8 free_threaded;
	__u8 reserved;
	/* PyThreadState */
	__u16 tstate_frame; /* current_frame (3.13+), or cframe (3.11, 3.12) */
	__u16 cframe_frame; /* _PyCFrame.current_frame; used where has_cframe */
	__u8 has_cframe;
	__u8 frame_tagged; /* 3.14+: low two bits of the executable are a tag */
	/* _PyInterpreterFrame; frame_size bytes are read at once */
	__u16 frame_size;
	__u16 frame_code, frame_previous, frame_instr, frame_owner;
	__u16 frame_is_entry; /* 3.11; 0 elsewhere */
	__s16 instr_bias; /* bytes from the stored pointer to the executing instruction: 0, or for
			     prev_instr (3.11, 3.12) 0 as well where it is the executing one: see
			     layout.c */
	__u8 owner_shim;  /* frames whose owner is at least this are entry shims; 0: none */
	__u8 reserved2;
	/* PyCodeObject; code_size bytes are read at once */
	__u16 code_size;
	__u16 code_name, code_qualname, code_filename, code_firstlineno, code_linetable;
	__u16 code_bytes; /* co_code_adaptive */
	/* PyUnicodeObject, PyBytesObject */
	__u16 unicode_length, unicode_state, unicode_ascii_data, unicode_compact_data;
	__u16 bytes_size, bytes_data;
};

/* How the thread finds its PyThreadState: a pthread TSD slot (glibc's own description of it, from
 * its `_thread_db_*` symbols), relative to the thread pointer. */
struct py_tsd {
	__u32 level1;	  /* offset of the first-level key data from the thread pointer */
	__u32 entry_size; /* of one struct pthread_key_data */
	__u32 data;	  /* offset of the value in it */
	__u32 reserved;
};

struct py_process {
	struct py_layout layout;
	struct py_tsd tsd;
	__u64 tss_key; /* address of the int: autoTSSkey._key */
	__u64 runtime; /* address of _PyRuntime */
	__u32 lineage; /* copied by fork, so children share their parent's code objects */
	__u32 reserved;
};

#endif
