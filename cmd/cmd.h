#ifndef PYPERF_CMD_H
#define PYPERF_CMD_H

#include "base/err.h"

#include <popt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * A subcommand is one file cmd/NAME.c and one row of the table in cmd/main.c. To add one: write
 * `int cmd_NAME(int argc, const char **argv)`, export its option table from a function, declare
 * both below, add the row. Help, completion and the man page check come from the tables.
 *
 * A popt table is static data; what its options write to is a static struct of that file, since a
 * process runs one command once. A command returns its exit status.
 */
struct command {
	const char *name;
	const char *arguments; /* of the usage line: "[OPTIONS] -- COMMAND [ARG...]" */
	const char *summary;   /* one line, for `pyperf help` */
	int (*run)(int argc, const char **argv);
	const struct poptOption *options;
	const char *const *examples; /* command lines, NULL-terminated; shown by --help */
	bool records;		     /* needs what recording needs: see base/confine.h */
};

/* All commands, ended by a row without name. */
extern const struct command commands[];
const struct command *command_find(const char *name);

/* Parses the options of a command; positional words stay in the context. Stops at the first word
 * that is no option where `stop_at_word`. Prints usage errors itself; NULL then, with *status to
 * return (0 after --help, 2 for an error). Otherwise free with poptFreeContext(). */
poptContext command_options(const struct command *command, int argc, const char **argv,
			    int stop_at_word, int *status);

/* Words of an option that takes one of a few; ended by a row without name. */
struct word {
	const char *name;
	int value;
};
/* The value, which is not negative; -1 where the word is none of them. */
int word_find(const struct word *words, const char *name);

/* "pyperf: sentence" and the hint on stderr; returns the exit status. */
int command_fail(const struct err *err);
/* A usage error in the command's own words: also names `pyperf help COMMAND`. Returns 2. */
int command_usage(const struct command *command, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* No such command: suggests the nearest one. Returns 2. */
int command_unknown(const char *name);
/* A line of text, broken at blanks so that it stays within the width, from the column that it
 * starts in. */
void command_put_wrapped(FILE *out, const char *text, int column, int width);
void command_help(FILE *out, const struct command *command);

/* Lines of log.h go to stderr: -q shows warnings only, -v all. */
void command_verbosity(int quiet, int verbose);

/* A mapped file that is cut short meanwhile reads as zeros there and does not end us. */
void command_reads_torn_files(void);

/* nohup's commands go on after SIGHUP, which they ignore; in a set that is blocked it would be
 * queued all the same, so it is taken out of that. */
void command_spare_hangup(sigset_t *set);
/* Ends output on stdout: an error such as a full disk becomes a message and status 1. Returns the
 * status. */
int command_finish_output(int status);

int cmd_record(int argc, const char **argv);
int cmd_report(int argc, const char **argv);
int cmd_annotate(int argc, const char **argv);
int cmd_view(int argc, const char **argv);
int cmd_script(int argc, const char **argv);
int cmd_export(int argc, const char **argv);
int cmd_diff(int argc, const char **argv);
int cmd_stat(int argc, const char **argv);
int cmd_top(int argc, const char **argv);
int cmd_list(int argc, const char **argv);
int cmd_dump(int argc, const char **argv);
int cmd_doctor(int argc, const char **argv);
int cmd_version(int argc, const char **argv);
int cmd_help(int argc, const char **argv);

extern const struct poptOption record_options[], report_options[], annotate_options[],
	view_command_options[], script_options[], export_options[], diff_options[],
	doctor_options[], dump_options[];
extern const struct poptOption stat_options[], top_options[], list_options[], version_options[],
	help_options[];

#endif
