#ifndef PYPERF_ERR_H
#define PYPERF_ERR_H

/*
 * How every layer reports failure.
 *
 * A function that can fail returns 0 (or a count) on success and a negative `enum err_code` on
 * failure, and takes a `struct err *` as its last parameter. The err holds one sentence that says
 * what happened and why, and one hint that says what to do next. lib/ never prints it; cmd/ does,
 * once, and takes the exit status from err_exit_status().
 *
 *      if (fd < 0)
 *              return err_sys(err, errno, "cannot open %s", path);
 *
 * A NULL err is allowed everywhere: the code is still returned, the text is dropped. Setting an
 * err that is already set replaces it; err_wrap() puts context in front instead.
 */

enum err_code {
	ERR_OK = 0,
	ERR_FAILED = -1,      /* anything without a better name */
	ERR_USAGE = -2,	      /* the user's words are off: exit 2 */
	ERR_SYSTEM = -3,      /* a system call failed: errno text is in the sentence */
	ERR_NOMEM = -4,	      /* memory ran out: recordings are still closed */
	ERR_PERMISSION = -5,  /* the kernel forbids it; the hint names the remedy */
	ERR_CORRUPT = -6,     /* input that breaks its own format */
	ERR_NOT_FOUND = -7,   /* what was asked for is not there */
	ERR_UNSUPPORTED = -8, /* this machine, kernel or build cannot do it */
};

struct err {
	enum err_code code;
	char text[512]; /* one sentence, no full stop, no newline */
	char hint[512]; /* what to do next; may be empty */
};

/* Sets code and sentence, clears the hint; returns `code` so that it can be returned on. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As err_set() with ": strerror(saved_errno)" appended; EPERM and EACCES become ERR_PERMISSION,
 * ENOENT becomes ERR_NOT_FOUND, ENOMEM becomes ERR_NOMEM, all else ERR_SYSTEM. */
int err_sys(struct err *err, int saved_errno, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Shorthand for ERR_NOMEM. */
int err_nomem(struct err *err);

/* Sets the hint of an err that is already set. */
void err_hint(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "context: " in front of the sentence; returns the code that is set. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* 0 ok, 1 failure, 2 usage. */
int err_exit_status(int code);

#endif
