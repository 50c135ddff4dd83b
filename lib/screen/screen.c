#include "screen/internal.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What a search may take before the screen is looked after again. */
#define SEARCH_SLICE_NS 20000000u
#define WHEEL_ROWS 3
#define SHIFT_COLUMNS 8

static struct screen_list *list_of(struct screen *screen)
{
	return screen_top(screen)->list;
}

static int move_rows(struct screen *screen, void *self, int by, struct err *err)
{
	screen_list_move(list_of(screen), by);
	return 0;
}

static int move_pages(struct screen *screen, void *self, int by, struct err *err)
{
	struct screen_list *list = list_of(screen);
	long page = list->height > 1 ? (long)list->height - 1 : 1;

	screen_list_scroll(list, by * page);
	screen_list_move(list, by * page);
	return 0;
}

static int move_end(struct screen *screen, void *self, int by, struct err *err)
{
	struct screen_list *list = list_of(screen);

	list->selected = by < 0 ? 0 : screen_list_count(list);
	screen_list_move(list, 0);
	return 0;
}

static int move_aside(struct screen *screen, void *self, int by, struct err *err)
{
	struct screen_list *list = list_of(screen);

	list->shift = by < 0 && list->shift < (size_t)-by ? 0 : list->shift + (size_t)by;
	return 0;
}

static int start_search(struct screen *screen, void *self, const char *text, struct err *err)
{
	struct screen_list *list = list_of(screen);

	if (list && !screen_list_search(list, text, 1))
		screen_say(screen, "nothing to search for");
	return 0;
}

static int ask_search(struct screen *screen, void *self, int argument, struct err *err)
{
	screen_ask(screen, "/", "", start_search, self);
	return 0;
}

static int search_again(struct screen *screen, void *self, int step, struct err *err)
{
	if (!screen_list_search(list_of(screen), NULL, step))
		screen_say(screen, "nothing was searched for yet: / does");
	return 0;
}

const struct screen_key screen_list_keys[] = {
	{{SCREEN_UP, 'k'}, move_rows, -1, NULL, "one row up"},
	{{SCREEN_DOWN, 'j'}, move_rows, 1, NULL, "one row down"},
	{{SCREEN_PAGE_UP, SCREEN_CTRL('b')}, move_pages, -1, NULL, "one page up"},
	{{SCREEN_PAGE_DOWN, SCREEN_CTRL('f'), ' '}, move_pages, 1, NULL, "one page down"},
	{{SCREEN_HOME, 'g'}, move_end, -1, NULL, "first row"},
	{{SCREEN_END, 'G'}, move_end, 1, NULL, "last row"},
	{{SCREEN_RIGHT}, move_aside, SHIFT_COLUMNS, NULL, "what is on the right"},
	{{SCREEN_LEFT}, move_aside, -SHIFT_COLUMNS, NULL, "back to the left"},
	{{'/'}, ask_search, 0, "search", "search"},
	{{'n'}, search_again, 1, NULL, "search on, down"},
	{{'N'}, search_again, -1, NULL, "search on, up"},
	SCREEN_LAST_KEY,
};

static int go_back(struct screen *screen, void *self, int argument, struct err *err)
{
	screen_pop(screen);
	return 0;
}

static int redraw(struct screen *screen, void *self, int argument, struct err *err)
{
	screen->anew = true;
	return 0;
}

const struct screen_key screen_common_keys[] = {
	{{'?', SCREEN_F1}, help_open, 0, "help", "the keys of this view"},
	{{'q', SCREEN_ESC}, go_back, 0, "back", "back; out of the first view"},
	{{SCREEN_CTRL('l')}, redraw, 0, NULL, "draw the screen anew"},
	SCREEN_LAST_KEY,
};

void layer_tables(const struct screen_layer *layer, const struct screen_key *tables[LAYER_TABLES])
{
	tables[0] = layer->view->keys;
	tables[1] = layer->list ? screen_list_keys : NULL;
	tables[2] = screen_common_keys;
}

bool layer_reaches(const struct screen_key *const tables[LAYER_TABLES], size_t table,
		   const struct screen_key *key)
{
	for (size_t i = 0; i < table; i++)
		if (screen_key_find(tables[i], key->codes[0]))
			return false;
	return true;
}

struct screen_layer *screen_top(struct screen *screen)
{
	return screen->layers.len ? &screen->layers.items[screen->layers.len - 1] : NULL;
}

int screen_check(struct err *err)
{
	return terminal_check(err);
}

/* A key may take and give back blocks of many megabytes: those of the key before are ready to use,
 * where new ones would have to be filled with pages first. */
static void keep_memory(void)
{
#ifdef M_MMAP_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, INT_MAX);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

int screen_open(struct screen **screen, struct err *err)
{
	int rc = terminal_open(err);

	*screen = NULL;
	if (rc)
		return rc;
	keep_memory();
	*screen = calloc(1, sizeof(**screen));
	if (*screen)
		return 0;
	terminal_close();
	return err_nomem(err);
}

static void close_layer(struct screen *screen)
{
	struct screen_layer layer = *screen_top(screen);

	screen->layers.len--;
	if (layer.view->close)
		layer.view->close(layer.self);
}

void screen_close(struct screen *screen)
{
	if (!screen)
		return;
	terminal_close();
	while (screen->layers.len)
		close_layer(screen);
	vec_fini(&screen->layers);
	prompt_close(&screen->prompt);
	strbuf_fini(&screen->prompt.text);
	strbuf_fini(&screen->message);
	screen_line_fini(&screen->line);
	free(screen);
}

void screen_tick(struct screen *screen, const void *self)
{
	for (size_t i = 0; i < screen->layers.len; i++) {
		struct screen_layer *layer = &screen->layers.items[i];

		if (layer->self == self && layer->view->tick)
			layer->tick_at = clock_now_ns() + (uint64_t)layer->view->tick_ms * 1000000u;
	}
}

int screen_push(struct screen *screen, const struct screen_view *view, void *self,
		struct screen_list *list, struct err *err)
{
	struct screen_layer *layer = vec_push(&screen->layers);

	if (!layer) {
		if (view->close)
			view->close(self);
		return err_nomem(err);
	}
	*layer = (struct screen_layer){
		.view = view, .self = self, .list = list, .tick_at = UINT64_MAX};
	if (view->tick)
		screen_tick(screen, self);
	screen->stale = true;
	return 0;
}

void screen_pop(struct screen *screen)
{
	screen->pops++;
}

void screen_quit(struct screen *screen)
{
	screen->quit = true;
}

void screen_redraw(struct screen *screen)
{
	screen->stale = true;
}

void screen_size(const struct screen *screen, int *rows, int *columns)
{
	terminal_size(rows, columns);
	*rows -= 2; /* title and status */
}

int screen_watch(struct screen *screen, int fd,
		 int (*ready)(struct screen *screen, void *self, struct err *err), void *self,
		 struct err *err)
{
	if (screen->watched_count == SCREEN_WATCHED)
		return err_set(err, ERR_FAILED, "too many descriptors are watched");
	screen->watched[screen->watched_count++] = (struct screen_watched){fd, ready, self};
	return 0;
}

void screen_unwatch(struct screen *screen, int fd)
{
	for (size_t i = 0; i < screen->watched_count; i++)
		if (screen->watched[i].fd == fd) {
			screen->watched[i] = screen->watched[--screen->watched_count];
			return;
		}
}

void screen_say(struct screen *screen, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	strbuf_reset(&screen->message);
	strbuf_str(&screen->message, text);
	screen->message_is_error = false;
	screen->stale = true;
}

void screen_say_err(struct screen *screen, const struct err *err)
{
	screen_say(screen, "%s%s%s", err->text, err->hint[0] ? ". " : "", err->hint);
	screen->message_is_error = true;
}

void screen_ask(struct screen *screen, const char *question, const char *initial,
		int (*done)(struct screen *screen, void *self, const char *text, struct err *err),
		void *self)
{
	prompt_open(screen, question, initial, done, self);
}

/* What an action left: an error to show, views to take off. */
static void settle(struct screen *screen, int rc, const struct err *err)
{
	if (rc < 0)
		screen_say_err(screen, err);
	for (; screen->pops && screen->layers.len; screen->pops--)
		close_layer(screen);
	screen->pops = 0;
	screen->stale = true;
}

static int on_mouse(struct screen *screen, const struct terminal_input *input, struct err *err)
{
	struct screen_layer *top = screen_top(screen);
	const struct screen_area *area = &top->area;
	int row = input->row - area->row, column = input->column - area->column;
	const struct screen_key *enter;
	size_t pointed;

	if (top->list && input->mouse != TERMINAL_CLICK) {
		screen_list_scroll(top->list,
				   input->mouse == TERMINAL_WHEEL_UP ? -WHEEL_ROWS : WHEEL_ROWS);
		return 0;
	}
	if (input->mouse != TERMINAL_CLICK || row < 0 || row >= area->height || column < 0 ||
	    column >= area->width)
		return 0;
	if (!top->list)
		return top->view->click ? top->view->click(screen, top->self, row, column, err) : 0;
	pointed = top->list->top + (size_t)row;
	if (pointed >= screen_list_count(top->list))
		return 0;
	/* A second click on a row is Enter. */
	enter = pointed == top->list->selected ? screen_key_find(top->view->keys, SCREEN_ENTER)
					       : NULL;
	top->list->selected = pointed;
	return enter ? enter->act(screen, top->self, enter->argument, err) : 0;
}

static int on_key(struct screen *screen, int code, struct err *err)
{
	struct screen_layer *top = screen_top(screen);
	const struct screen_key *tables[LAYER_TABLES], *key;

	if (screen->prompt.question)
		return prompt_key(screen, code, err);
	layer_tables(top, tables);
	for (size_t i = 0; i < LAYER_TABLES; i++) {
		key = screen_key_find(tables[i], code);
		if (key)
			return key->act(screen, top->self, key->argument, err);
	}
	return 0;
}

static bool is_searching(struct screen *screen)
{
	struct screen_layer *top = screen_top(screen);

	return top && top->list && top->list->search_left;
}

static void search_on(struct screen *screen)
{
	struct screen_list *list = list_of(screen);

	switch (screen_list_search_on(list, clock_now_ns() + SEARCH_SLICE_NS)) {
	case SCREEN_FOUND:
		strbuf_reset(&screen->message);
		break;
	case SCREEN_NOT_FOUND:
		screen_say(screen, "'%s' is not here", list->wanted);
		break;
	case SCREEN_SEARCHING:
		screen_say(screen, "searching for '%s', %zu rows to go", list->wanted,
			   list->search_left);
		break;
	}
	screen->stale = true;
}

static void on_input(struct screen *screen, const struct terminal_input *input)
{
	struct err err = {0};
	int rc;

	/* A key ends a search, but one that was typed ahead comes after what the search finds. */
	if (is_searching(screen))
		search_on(screen);
	strbuf_reset(&screen->message);
	if (list_of(screen))
		list_of(screen)->search_left = 0;
	rc = input->key == SCREEN_MOUSE ? on_mouse(screen, input, &err)
					: on_key(screen, input->key, &err);
	settle(screen, rc, &err);
}

static void read_keys(struct screen *screen)
{
	struct terminal_input input;
	bool gone = false;

	while (screen->layers.len && !screen->quit && terminal_read(&input, &gone))
		on_input(screen, &input);
	screen->quit |= gone;
}

/* Calls ticks that are due; ms until the next one is, or -1. */
static int tick(struct screen *screen)
{
	uint64_t now = clock_now_ns(), next = UINT64_MAX;

	for (size_t i = 0; i < screen->layers.len && !screen->quit; i++) {
		struct screen_layer *layer = &screen->layers.items[i];
		const struct screen_view *view = layer->view;
		struct err err = {0};

		if (now >= layer->tick_at) {
			int rc = view->tick(screen, layer->self, &err);

			if (rc < 0 || screen->pops)
				settle(screen, rc, &err);
			if (i >= screen->layers.len)
				return 0;
			layer = &screen->layers.items[i];
			layer->tick_at = rc == 1 ? UINT64_MAX
						 : now + (uint64_t)view->tick_ms * 1000000u;
		}
		if (layer->tick_at < next)
			next = layer->tick_at;
	}
	if (next == UINT64_MAX)
		return -1;
	now = clock_now_ns();
	return next > now ? (int)((next - now) / 1000000u) + 1 : 0;
}

static void serve_watched(struct screen *screen, const struct pollfd *fds, size_t count)
{
	struct screen_watched watched[SCREEN_WATCHED];

	/* Whoever is called may watch others. */
	memcpy(watched, screen->watched, sizeof(watched));
	for (size_t i = 0; i < count && !screen->quit; i++) {
		struct err err = {0};
		int rc;

		if (!fds[i].revents)
			continue;
		rc = watched[i].ready(screen, watched[i].self, &err);
		if (rc < 0 || screen->pops)
			settle(screen, rc, &err);
	}
}

static void wait_and_serve(struct screen *screen, int timeout)
{
	struct pollfd fds[2 + SCREEN_WATCHED] = {
		{.fd = 0, .events = POLLIN},
		{.fd = terminal_signal_fd(), .events = POLLIN},
	};
	size_t count = screen->watched_count;

	for (size_t i = 0; i < count; i++)
		fds[2 + i] = (struct pollfd){.fd = screen->watched[i].fd, .events = POLLIN};
	if (poll(fds, 2 + count, timeout) < 0 && errno != EINTR)
		screen->quit = true;
	if (fds[1].revents) {
		terminal_signalled();
		screen->stale = screen->anew = true;
	}
	if (fds[0].revents & (POLLERR | POLLNVAL))
		screen->quit = true;
	else if (fds[0].revents)
		read_keys(screen);
	/* Hung up: read() tells nothing else than the end of keys. */
	if ((fds[0].revents & POLLHUP) && !(fds[0].revents & POLLIN))
		screen->quit = true;
	serve_watched(screen, fds + 2, count);
}

int screen_run(struct screen *screen, struct err *err)
{
	screen->quit = false;
	while (screen->layers.len && !screen->quit) {
		int timeout = tick(screen);

		if (screen->quit || !screen->layers.len)
			break;
		if (is_searching(screen)) {
			search_on(screen);
			timeout = is_searching(screen) ? 0 : timeout;
		}
		if (screen->stale) {
			draw_screen(screen);
			screen->stale = screen->anew = false;
		}
		wait_and_serve(screen, timeout);
	}
	return 0;
}
