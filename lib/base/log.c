#include "base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

static log_sink *current_sink;
static void *current_ctx;

void log_set_sink(log_sink *sink, void *ctx)
{
	current_sink = sink;
	current_ctx = ctx;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	if (!current_sink)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	current_sink(level, line, current_ctx);
}
