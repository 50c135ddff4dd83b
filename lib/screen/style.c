#include "screen/style.h"

#ifdef HAVE_NCURSES

#include <curses.h>
#include <stdlib.h>

static const struct {
	short text, ground;   /* -1: the terminal's own */
	attr_t with, without; /* colours */
} looks[SCREEN_ROLES] = {
	[SCREEN_PLAIN] = {-1, -1, A_NORMAL, A_NORMAL},
	[SCREEN_FAINT] = {-1, -1, A_DIM, A_DIM},
	[SCREEN_STRONG] = {-1, -1, A_BOLD, A_BOLD},
	[SCREEN_BAR] = {COLOR_WHITE, COLOR_BLUE, A_BOLD, A_REVERSE},
	[SCREEN_HEADING] = {-1, -1, A_BOLD, A_BOLD},
	[SCREEN_NAME] = {-1, -1, A_BOLD, A_BOLD},
	[SCREEN_HOT] = {COLOR_RED, -1, A_BOLD, A_BOLD},
	[SCREEN_WARM] = {COLOR_GREEN, -1, A_NORMAL, A_NORMAL},
	[SCREEN_NATIVE] = {COLOR_CYAN, -1, A_NORMAL, A_NORMAL},
	[SCREEN_KERNEL] = {COLOR_MAGENTA, -1, A_NORMAL, A_NORMAL},
	[SCREEN_ERROR] = {COLOR_RED, -1, A_BOLD, A_REVERSE},
	[SCREEN_FLAME_PYTHON] = {COLOR_BLACK, COLOR_YELLOW, A_NORMAL, A_REVERSE},
	[SCREEN_FLAME_PYTHON2] = {COLOR_BLACK, COLOR_GREEN, A_NORMAL, A_NORMAL},
	[SCREEN_FLAME_NATIVE] = {COLOR_BLACK, COLOR_CYAN, A_NORMAL, A_REVERSE},
	[SCREEN_FLAME_NATIVE2] = {COLOR_WHITE, COLOR_BLUE, A_NORMAL, A_NORMAL},
	[SCREEN_FLAME_KERNEL] = {COLOR_BLACK, COLOR_MAGENTA, A_NORMAL, A_REVERSE},
	[SCREEN_FLAME_KERNEL2] = {COLOR_BLACK, COLOR_RED, A_NORMAL, A_NORMAL},
};

static bool coloured;

void style_init(void)
{
	const char *no_color = getenv("NO_COLOR");

	coloured = !(no_color && *no_color) && has_colors() && start_color() == OK &&
		   use_default_colors() == OK && COLOR_PAIRS > SCREEN_ROLES;
	for (short role = 0; coloured && role < SCREEN_ROLES; role++)
		init_pair((short)(role + 1), looks[role].text, looks[role].ground);
}

unsigned int style_attributes(enum screen_role role)
{
	return (unsigned int)(coloured ? looks[role].with | (attr_t)COLOR_PAIR((int)role + 1)
				       : looks[role].without);
}

#endif
