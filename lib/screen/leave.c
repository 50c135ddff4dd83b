#include "screen/leave.h"

#ifdef HAVE_NCURSES

#include <curses.h>
#include <string.h>
/* Apart from the rest, for it makes macros of many words. */
#include <term.h>

/* Attributes, keypad, cursor, and the other screen. */
static const char *const capabilities[] = {"sgr0", "rmkx", "cnorm", "rmcup"};

/* The library finds this by other names on each terminal, all of which mean these two modes. */
#define MOUSE_OFF "\033[?1006;1000l"

void leave_text(char *buf, size_t size, bool mouse)
{
	size_t len = (size_t)snprintf(buf, size, "%s", mouse ? MOUSE_OFF : "");

	for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++) {
		const char *text = tigetstr(capabilities[i]);

		if (!text || text == (char *)-1)
			continue;
		for (; *text && len + 1 < size; text++) {
			const char *delay_end = strncmp(text, "$<", 2) ? NULL : strchr(text, '>');

			/* "$<5>": for hardware that needed time. */
			if (delay_end)
				text = delay_end;
			else
				buf[len++] = *text;
		}
	}
	buf[len] = '\0';
}

#endif
