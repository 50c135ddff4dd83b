#ifndef PYPERF_WALK_LIMITS_H
#define PYPERF_WALK_LIMITS_H

/* Sizes of what the walker reads at once; py_layout_check() keeps every layout within them. */

#define WALK_WINDOW_WORDS 128  /* of memory that frames are read from; powers of two */
#define WALK_FRAME_WORDS 16    /* of a frame */
#define WALK_CODE_WORDS 32     /* of a code object's header */
#define WALK_STRING_WORDS 32   /* of a string that identifies a code object, its header included */
#define WALK_IDENTITY_WORDS 16 /* of its characters that count */
#define WALK_STRING_HEADER 64  /* bytes of a PyUnicodeObject or PyBytesObject before its data */

/* Every program makes code objects where others were while it starts, some hundreds of them; one
 * that goes on doing so soon has more. Only then are the strings read, which costs a third of a
 * walk. */
#define WALK_REUSE_MANY 512

#endif
