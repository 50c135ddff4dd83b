#ifndef PYPERF_LOG_H
#define PYPERF_LOG_H

/*
 * One line to the user that is not an error: what fell back, what was left out.
 *
 * Libraries call these; where the line goes is decided by cmd/, which sets the sink. Before that
 * lines are dropped. A line is one sentence without newline or prefix.
 */

enum log_level {
	LOG_WARN,  /* the result is not quite what was asked for */
	LOG_INFO,  /* shown unless -q */
	LOG_DEBUG, /* shown with -v */
};

typedef void log_sink(enum log_level level, const char *line, void *ctx);

/* Sets the process-wide sink; NULL drops lines again. */
void log_set_sink(log_sink *sink, void *ctx);

void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

#endif
