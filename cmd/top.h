#ifndef PYPERF_CMD_TOP_H
#define PYPERF_CMD_TOP_H

#include "cmd/aside.h"
#include "cmd/session.h"
#include "output/top.h"

/* `pyperf top`: top.c sets up, top_look.c looks at what runs, top_screen.c shows it on a terminal.
 */

struct top_setup {
	struct recorder_options options;
	struct recorder_target *target;
	struct top_choice choice; /* to begin with */
	uint64_t delay_ms;	  /* between two turns */
	uint64_t turns;		  /* 0: without end */
	uint64_t duration_us;	  /* likewise */
	bool json, on_screen;
};

/* What is being looked at. */
struct looking {
	const struct top_setup *setup;
	struct session session;
	struct recorder *recorder;
	struct recorder_listener listener;
	struct live_event *events;
	struct thread_table threads;
	struct holders *holders;
	struct top top; /* for lib/output */
	struct strbuf title;
	int look_fd, turn_fd; /* timers: at the lock, at everything */
	uint64_t turns;
	bool renewing;	    /* samples are left out */
	struct aside aside; /* what the program writes while the screen is shown */
	struct err err;	    /* of what was called back */
};

/* `looking->session` and ->recorder are made; the program is held. */
int looking_open(struct looking *looking, struct err *err);
void looking_close(struct looking *looking);
/* Before the recorder is made. */
void looking_listen(struct looking *looking);
/* Was it due? */
bool looking_timer(int fd);
/* Takes what has come, so that it can be shown. */
int looking_turn(struct looking *looking, struct err *err);
/* What was shown is over: the next interval begins. */
int looking_turned(struct looking *looking, struct err *err);

/* Until it ends: a table after another on standard output; on the terminal. */
int top_print(struct looking *looking, struct err *err);
int top_screen(struct looking *looking, struct err *err);

#endif
