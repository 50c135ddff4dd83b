#include "screen/terminal.h"

#include "screen/leave.h"
#include "screen/restore.h"
#include "screen/style.h"

#include "base/text.h"

#ifdef HAVE_NCURSES

#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

/* ms to wait for the rest of a key that begins as Esc does. */
#define ESC_DELAY 50

static const int watched[] = {SIGTSTP, SIGCONT, SIGWINCH};
#define WATCHED (sizeof(watched) / sizeof(watched[0]))

static struct {
	SCREEN *curses;
	int pipe[2]; /* a byte for each signal */
	struct sigaction old[WATCHED];
	bool utf8;
} terminal;

static const struct {
	int curses, key;
} key_codes[] = {
	{KEY_UP, SCREEN_UP},	   {KEY_DOWN, SCREEN_DOWN},	{KEY_LEFT, SCREEN_LEFT},
	{KEY_RIGHT, SCREEN_RIGHT}, {KEY_PPAGE, SCREEN_PAGE_UP}, {KEY_NPAGE, SCREEN_PAGE_DOWN},
	{KEY_HOME, SCREEN_HOME},   {KEY_END, SCREEN_END},	{KEY_BACKSPACE, SCREEN_BACKSPACE},
	{KEY_DC, SCREEN_DELETE},   {KEY_BTAB, SCREEN_BACKTAB},	{KEY_ENTER, SCREEN_ENTER},
	{KEY_F(1), SCREEN_F1},	   {KEY_MOUSE, SCREEN_MOUSE},
};

static void on_signal(int number)
{
	int saved = errno;
	char byte = (char)number;
	ssize_t written = write(terminal.pipe[1], &byte, 1);

	(void)written; /* full: it is readable anyway */
	errno = saved;
}

static int watch_signals(struct err *err)
{
	struct sigaction action = {.sa_handler = on_signal};

	if (pipe2(terminal.pipe, O_CLOEXEC | O_NONBLOCK))
		return err_sys(err, errno, "cannot make a pipe");
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < WATCHED; i++)
		sigaction(watched[i], &action, &terminal.old[i]);
	return 0;
}

static void leave_signals(void)
{
	for (size_t i = 0; i < WATCHED; i++)
		sigaction(watched[i], &terminal.old[i], NULL);
	close(terminal.pipe[0]);
	close(terminal.pipe[1]);
}

static int refuse(struct err *err, const char *why)
{
	err_set(err, ERR_UNSUPPORTED, "there is no interactive view: %s", why);
	err_hint(err, "--stdio writes text.");
	return ERR_UNSUPPORTED;
}

/* NULL where the terminal can be drawn on. */
static const char *find_obstacle(void)
{
	const char *type = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return "standard input and output are no terminal";
	if (!type || !*type)
		return "TERM is not set";
	if (strcmp(type, "dumb") == 0)
		return "TERM says that the terminal is dumb";
	return NULL;
}

int terminal_check(struct err *err)
{
	const char *obstacle = find_obstacle();

	return obstacle ? refuse(err, obstacle) : 0;
}

int terminal_open(struct err *err)
{
	char leave[256];
	int rc = terminal_check(err);

	if (rc)
		return rc;
	/* Before the library looks: signals that are handled stay as they are. */
	rc = restore_arm(err);
	if (rc)
		return rc;
	rc = watch_signals(err);
	if (rc) {
		restore_disarm();
		return rc;
	}
	set_escdelay(ESC_DELAY);
	terminal.curses = newterm(NULL, stdout, stdin);
	if (!terminal.curses) {
		leave_signals();
		restore_disarm();
		return refuse(err, "the terminal is not known, see TERM");
	}
	terminal.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
	style_init();
	mouseinterval(0); /* presses, at once */
	leave_text(leave, sizeof(leave),
		   mousemask(BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL));
	restore_set(leave);
	return 0;
}

void terminal_close(void)
{
	if (!terminal.curses)
		return;
	mousemask(0, NULL);
	endwin();
	delscreen(terminal.curses);
	terminal.curses = NULL;
	leave_signals();
	restore_disarm();
}

int terminal_signal_fd(void)
{
	return terminal.pipe[0];
}

/* As the shell wants it; goes on when it resumes us. */
static void stop(void)
{
	struct sigaction ours;

	endwin();
	sigaction(SIGTSTP, NULL, &ours);
	signal(SIGTSTP, SIG_DFL);
	raise(SIGTSTP);
	sigaction(SIGTSTP, &ours, NULL);
}

static void follow_size(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
}

void terminal_signalled(void)
{
	char bytes[64];
	bool stopped = false, resumed = false;
	ssize_t len;

	while ((len = read(terminal.pipe[0], bytes, sizeof(bytes))) > 0)
		for (ssize_t i = 0; i < len; i++) {
			stopped |= bytes[i] == SIGTSTP;
			resumed |= bytes[i] == SIGCONT;
		}
	if (stopped)
		stop();
	else if (resumed)
		endwin(); /* somebody else set the modes meanwhile */
	follow_size();
}

void terminal_size(int *rows, int *columns)
{
	getmaxyx(stdscr, *rows, *columns);
}

static bool read_mouse(struct terminal_input *input)
{
	MEVENT event;

	if (getmouse(&event) != OK)
		return false;
	input->row = event.y;
	input->column = event.x;
	if (event.bstate & BUTTON4_PRESSED)
		input->mouse = TERMINAL_WHEEL_UP;
	else if (event.bstate & BUTTON5_PRESSED)
		input->mouse = TERMINAL_WHEEL_DOWN;
	else if (event.bstate & BUTTON1_PRESSED)
		input->mouse = TERMINAL_CLICK;
	else
		return false;
	return true;
}

static int key_of(int code)
{
	for (size_t i = 0; i < sizeof(key_codes) / sizeof(key_codes[0]); i++)
		if (key_codes[i].curses == code)
			return key_codes[i].key;
	return SCREEN_NO_KEY;
}

bool terminal_read(struct terminal_input *input, bool *gone)
{
	wint_t code;

	for (;;) {
		int rc;

		errno = 0;
		rc = get_wch(&code);
		*input = (struct terminal_input){0};
		if (rc == ERR) {
			*gone = errno == EIO;
			return false;
		}
		input->key = rc == KEY_CODE_YES ? key_of((int)code) : (int)code;
		if (rc != KEY_CODE_YES && (code == '\r' || code == '\n'))
			input->key = SCREEN_ENTER;
		if (rc != KEY_CODE_YES && (code == 127 || code == 8))
			input->key = SCREEN_BACKSPACE;
		if (input->key == SCREEN_MOUSE ? read_mouse(input) : input->key != SCREEN_NO_KEY)
			return true;
	}
}

void terminal_begin(bool anew)
{
	erase();
	if (anew)
		clearok(curscr, TRUE);
}

void terminal_end(void)
{
	refresh();
}

void terminal_cursor(int row, int column)
{
	curs_set(row >= 0);
	if (row < 0)
		return;
	move(row, column);
	refresh();
}

/* The character as the terminal may have it: none that moves the cursor, none that its character
 * set lacks. */
static wchar_t printable(uint32_t cp)
{
	char bytes[MB_LEN_MAX];
	mbstate_t state = {0};

	if (cp < ' ' || (cp >= 0x7f && cp < 0xa0))
		return L'?';
	if (cp < 0x7f || terminal.utf8)
		return (wchar_t)cp;
	return wcrtomb(bytes, (wchar_t)cp, &state) == (size_t)-1 ? L'?' : (wchar_t)cp;
}

/* Returns the column behind what was put. */
static int put_text(const char *text, size_t len, int column, int end)
{
	while (len) {
		uint32_t cp;
		size_t n = text_decode(text, len, &cp);
		wchar_t c;
		int width;

		if (!n) {
			n = 1;
			cp = '?';
		}
		width = (int)text_width(text, n);
		if (column + width > end)
			break;
		c = printable(cp);
		addnwstr(&c, 1);
		column += width;
		text += n;
		len -= n;
	}
	return column;
}

void terminal_put(int row, int column, int width, const struct screen_line *line, bool selected)
{
	attr_t mark = selected ? A_REVERSE : 0;
	int end = column + width;

	if (move(row, column) == ERR)
		return;
	for (size_t i = 0; line && i < line->parts.len && column < end; i++) {
		const struct screen_part *part = &line->parts.items[i];
		size_t stop_at = i + 1 < line->parts.len ? part[1].start : line->text.len;

		if (stop_at == part->start)
			continue;
		attrset((int)(style_attributes(part->role) ^ mark));
		column = put_text(line->text.buf + part->start, stop_at - part->start, column, end);
	}
	attrset((int)mark);
	for (; column < end; column++)
		addch(' ');
	attrset(A_NORMAL);
}

bool terminal_is_utf8(void)
{
	return terminal.utf8;
}

#else

int terminal_check(struct err *err)
{
	err_set(err, ERR_UNSUPPORTED,
		"there is no interactive view: this pyperf was built without ncurses");
	err_hint(err, "--stdio writes text; to have the view, build with libncurses-dev.");
	return ERR_UNSUPPORTED;
}

int terminal_open(struct err *err)
{
	return terminal_check(err);
}

void terminal_close(void)
{
}

int terminal_signal_fd(void)
{
	return -1;
}

void terminal_signalled(void)
{
}

void terminal_size(int *rows, int *columns)
{
	*rows = *columns = 0;
}

bool terminal_read(struct terminal_input *input, bool *gone)
{
	*gone = true;
	return false;
}

void terminal_begin(bool anew)
{
}

void terminal_end(void)
{
}

void terminal_cursor(int row, int column)
{
}

void terminal_put(int row, int column, int width, const struct screen_line *line, bool selected)
{
}

bool terminal_is_utf8(void)
{
	return false;
}

#endif
