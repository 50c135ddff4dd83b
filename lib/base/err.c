#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	int code;
	int exit_status;
} statuses[] = {
	{ERR_OK, 0},
	{ERR_USAGE, 2},
};

static const struct {
	int sys;
	enum err_code code;
} from_errno[] = {
	{EPERM, ERR_PERMISSION},
	{EACCES, ERR_PERMISSION},
	{ENOENT, ERR_NOT_FOUND},
	{ENOMEM, ERR_NOMEM},
};

static void set_text(struct err *err, enum err_code code, const char *fmt, va_list ap)
{
	err->code = code;
	err->hint[0] = '\0';
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	if (err) {
		va_list ap;

		va_start(ap, fmt);
		set_text(err, code, fmt, ap);
		va_end(ap);
	}
	return code;
}

int err_sys(struct err *err, int saved_errno, const char *fmt, ...)
{
	enum err_code code = ERR_SYSTEM;

	for (size_t i = 0; i < sizeof(from_errno) / sizeof(from_errno[0]); i++)
		if (from_errno[i].sys == saved_errno)
			code = from_errno[i].code;
	if (err) {
		va_list ap;
		size_t len;

		va_start(ap, fmt);
		set_text(err, code, fmt, ap);
		va_end(ap);
		len = strlen(err->text);
		snprintf(err->text + len, sizeof(err->text) - len, ": %s", strerror(saved_errno));
	}
	return code;
}

int err_nomem(struct err *err)
{
	return err_set(err, ERR_NOMEM, "out of memory");
}

void err_hint(struct err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
	va_end(ap);
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char text[sizeof(err->text)];
	va_list ap;
	int len;

	if (!err)
		return ERR_FAILED;
	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* A sentence that gets too long loses its end. */
	if (len >= 0 && (size_t)len + 3 < sizeof(text)) {
		memcpy(text + len, ": ", 2);
		memccpy(text + len + 2, err->text, '\0', sizeof(text) - (size_t)len - 3);
		text[sizeof(text) - 1] = '\0';
	}
	memcpy(err->text, text, sizeof(text));
	return err->code;
}

int err_exit_status(int code)
{
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (statuses[i].code == code)
			return statuses[i].exit_status;
	return code > 0 ? 0 : 1;
}
