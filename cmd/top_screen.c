#include "cmd/top.h"

#include "output/names.h"
#include "output/output.h"
#include "screen/screen.h"

#include <stdlib.h>
#include <string.h>

/*
 * The table on a terminal. The screen's loop serves the recording, too: its descriptors are
 * watched, and what a turn brings is laid out then, so that a key costs no more than drawing.
 *
 * While paused, what comes is counted but not shown.
 */
#define ROWS_MAX 1000 /* that are laid out */
#define HEAD_LINES 3  /* above the columns: the figures of the whole, a blank line */

struct watching {
	struct looking *looking;
	struct screen *screen;
	struct top_choice choice;
	struct strbuf filter, head[2];
	struct strbuf order; /* what the rows are ordered by */
	struct top_table table;
	struct screen_list list;
	bool paused, table_is_stale;
	struct lines_view *lines; /* NULL: not shown */
};

static int find_orders(const struct watching *watching, struct top_orders *orders, struct err *err)
{
	return top_orders_find(orders, &watching->looking->top, &watching->choice, err);
}

static int name_order(struct watching *watching, struct err *err)
{
	struct top_orders orders;
	int ret = find_orders(watching, &orders, err);

	if (ret)
		return ret;
	strbuf_reset(&watching->order);
	strbuf_str(&watching->order, orders.items[orders.chosen].name);
	top_orders_fini(&orders);
	return 0;
}

static int lay_out(struct watching *watching, struct err *err)
{
	struct top_choice *choice = &watching->choice;
	int ret;

	choice->filter = watching->filter.len ? strbuf_text(&watching->filter) : NULL;
	ret = top_table_make(&watching->table, &watching->looking->top, choice, err);
	strbuf_reset(&watching->head[0]);
	strbuf_reset(&watching->head[1]);
	top_head_samples(&watching->looking->top, choice, &watching->head[0]);
	top_head_threads(&watching->looking->top, choice, &watching->head[1]);
	watching->list.headings = HEAD_LINES + watching->table.heading_count;
	watching->table_is_stale = false;
	return ret ? ret : name_order(watching, err);
}

/* The lines of one function, in a view of their own. */

struct lines_view {
	struct watching *watching;
	struct strbuf name, file; /* by which it is known, for numbers change */
	uint32_t line;
	struct screen_list list;
	char *text;
	size_t len;
	struct {
		VEC_OF(size_t)
	} starts;
};

static uint32_t find_function(const struct lines_view *lines, const struct profile *profile)
{
	for (uint32_t i = 0; i < profile_function_count(profile); i++) {
		const struct profile_function *f = profile_function(profile, i);

		if (f->line == lines->line &&
		    strcmp(profile_text(profile, f->qualname), strbuf_text(&lines->name)) == 0 &&
		    strcmp(profile_text(profile, f->file), strbuf_text(&lines->file)) == 0)
			return i;
	}
	return UINT32_MAX;
}

static int write_lines(const struct lines_view *lines, FILE *out, struct profile *profile,
		       uint32_t function, struct err *err)
{
	const struct watching *watching = lines->watching;
	struct metric_columns metrics;
	struct annotate annotate = {
		.profile = profile,
		.function = function,
		.event = watching->choice.event,
		.width = watching->choice.width,
		.metrics = &metrics,
	};
	struct view *functions = NULL;
	int ret = view_functions(&functions, profile, NULL, VIEW_BY_SELF, annotate.event, err);

	annotate.functions = functions;
	if (!ret)
		ret = metric_columns_init(&metrics, profile, annotate.event, NULL, err);
	if (!ret)
		ret = profile_function(profile, function)->kind == FRAME_PYTHON
			      ? output_annotate_python(out, &annotate, err)
			      : output_annotate_native(out, &annotate, err);
	view_free(functions);
	return ret;
}

static int lay_out_lines(struct lines_view *lines, struct err *err)
{
	const struct watching *watching = lines->watching;
	struct profile *profile = live_profile(watching->looking->top.live, watching->choice.all);
	uint32_t function = find_function(lines, profile);
	FILE *out;
	int ret = 0;

	free(lines->text);
	lines->text = NULL;
	lines->starts.len = 0;
	out = open_memstream(&lines->text, &lines->len);
	if (!out)
		return err_nomem(err);
	if (function == UINT32_MAX)
		fprintf(out, "it was not seen since the tables began anew\n");
	else
		ret = write_lines(lines, out, profile, function, err);
	if (fclose(out) != 0)
		return err_nomem(err);
	for (char *line = lines->text, *end; (end = strchr(line, '\n')); line = end + 1) {
		size_t *start = vec_push(&lines->starts);

		if (!start)
			return err_nomem(err);
		*start = (size_t)(line - lines->text);
		*end = '\0';
	}
	return ret;
}

static size_t count_lines(void *self)
{
	return ((struct lines_view *)self)->starts.len;
}

static void put_source(void *self, size_t row, struct screen_line *line)
{
	struct lines_view *lines = self;

	screen_line_add(line, SCREEN_PLAIN, lines->text + lines->starts.items[row]);
}

static void lines_title(void *self, struct screen_line *line)
{
	struct lines_view *lines = self;

	screen_line_add(line, SCREEN_BAR, " ");
	screen_line_escape(line, SCREEN_BAR, strbuf_text(&lines->name), lines->name.len);
	if (lines->watching->paused)
		screen_line_add(line, SCREEN_BAR, "   paused");
}

static void lines_close(void *self)
{
	struct lines_view *lines = self;

	lines->watching->lines = NULL;
	lines->watching->table_is_stale = true;
	strbuf_fini(&lines->name);
	strbuf_fini(&lines->file);
	screen_list_fini(&lines->list);
	vec_fini(&lines->starts);
	free(lines->text);
	free(lines);
}

static int open_lines(struct screen *screen, void *self, int argument, struct err *err)
{
	static const struct screen_view view = {
		.name = "lines", .title = lines_title, .close = lines_close};
	static const struct screen_rows rows = {.count = count_lines, .row = put_source};
	struct watching *watching = self;
	struct profile *profile = live_profile(watching->looking->top.live, watching->choice.all);
	const struct profile_function *function;
	struct lines_view *lines;
	size_t row = watching->list.selected;
	int ret;

	if (row >= watching->table.rows.len ||
	    watching->table.rows.items[row].function >= profile_function_count(profile))
		return err_set(err, ERR_NOT_FOUND, "no function is chosen");
	lines = calloc(1, sizeof(*lines));
	if (!lines)
		return err_nomem(err);
	function = profile_function(profile, watching->table.rows.items[row].function);
	strbuf_str(&lines->name, profile_text(profile, function->qualname));
	strbuf_str(&lines->file, profile_text(profile, function->file));
	lines->line = function->line;
	lines->watching = watching;
	lines->list = (struct screen_list){.rows = &rows, .self = lines};
	ret = lay_out_lines(lines, err);
	if (ret) {
		lines_close(lines);
		return ret;
	}
	watching->lines = lines;
	return screen_push(screen, &view, lines, &lines->list, err);
}

/* The table. */

static size_t count_rows(void *self)
{
	return ((struct watching *)self)->table.rows.len;
}

/* What was laid out before a key, or for another width. */
static void prepare(void *self, size_t first, size_t count, int width)
{
	struct watching *watching = self;

	if (width == watching->choice.width && !watching->table_is_stale)
		return;
	watching->choice.width = width;
	lay_out(watching, NULL);
}

static void put_heading(void *self, unsigned int index, struct screen_line *line)
{
	const struct watching *watching = self;

	if (index < 2)
		screen_line_add(line, index ? SCREEN_STRONG : SCREEN_PLAIN,
				strbuf_text(&watching->head[index]));
	else if (index >= HEAD_LINES && index - HEAD_LINES < watching->table.heading_count)
		screen_line_add(line, SCREEN_HEADING,
				watching->table.text +
					watching->table.headings[index - HEAD_LINES]);
}

/* How many bytes of a row are shares, which stand in front: up to the last "%" among figures. */
static size_t shares_of(const char *text)
{
	size_t len = strspn(text, " 0123456789.,%");

	while (len && text[len - 1] != '%')
		len--;
	return len;
}

static void put_row(void *self, size_t row, struct screen_line *line)
{
	const struct watching *watching = self;
	const struct top_row *r = &watching->table.rows.items[row];
	const char *text;
	size_t shares;

	if (row >= watching->table.rows.len)
		return;
	text = watching->table.text + r->start;
	shares = shares_of(text);
	screen_line_printf(line, screen_heat(r->share), "%.*s", (int)shares, text);
	screen_line_add(line, SCREEN_PLAIN, text + shares);
}

static void put_title(void *self, struct screen_line *line)
{
	const struct watching *watching = self;
	const struct top *top = &watching->looking->top;

	screen_line_add(line, SCREEN_BAR, " ");
	screen_line_escape(line, SCREEN_BAR, top->title, strlen(top->title));
	screen_line_printf(line, SCREEN_BAR, "   %.0f s", (double)(top->now - top->began) / 1e9);
	if (top->ended)
		screen_line_add(line, SCREEN_BAR, "   ended");
	if (watching->paused)
		screen_line_add(line, SCREEN_BAR, "   paused");
	if (watching->filter.len) {
		screen_line_add(line, SCREEN_BAR, "   filter: ");
		screen_line_escape(line, SCREEN_BAR, strbuf_text(&watching->filter),
				   watching->filter.len);
	}
	screen_line_printf(line, SCREEN_BAR, "   by %s", strbuf_text(&watching->order));
}

/* Keys. */

enum { SORT_ALL = 0x100 }; /* beside an enum top_sort: since the beginning */

static int sort_by(struct screen *screen, void *self, int sort, struct err *err)
{
	struct watching *watching = self;

	watching->choice.sort = (unsigned int)(sort & ~SORT_ALL);
	watching->choice.all = sort & SORT_ALL;
	watching->list.selected = 0;
	return lay_out(watching, err);
}

/* Takes over one of the orders, which were found for the choice. */
static int take_order(struct watching *watching, struct top_orders *orders, size_t index,
		      struct err *err)
{
	watching->choice.sort = orders->items[index].sort;
	watching->choice.event = orders->items[index].event;
	top_orders_fini(orders);
	watching->list.selected = 0;
	return lay_out(watching, err);
}

static int order_chosen(struct screen *screen, void *self, size_t index, struct err *err)
{
	struct top_orders orders;
	int ret = find_orders(self, &orders, err);

	return ret ? ret : take_order(self, &orders, index, err);
}

static int choose_order(struct screen *screen, void *self, int argument, struct err *err)
{
	struct top_orders orders;
	const char **names;
	int ret = find_orders(self, &orders, err);

	if (ret)
		return ret;
	names = calloc(orders.len, sizeof(*names));
	for (size_t i = 0; names && i < orders.len; i++)
		names[i] = orders.items[i].name;
	ret = names ? screen_choose(screen, "Sort by", names, orders.len, orders.chosen,
				    order_chosen, self, err)
		    : err_nomem(err);
	free(names);
	top_orders_fini(&orders);
	return ret;
}

static int next_order(struct screen *screen, void *self, int step, struct err *err)
{
	struct top_orders orders;
	int ret = find_orders(self, &orders, err);

	return ret ? ret
		   : take_order(self, &orders,
				(orders.chosen + orders.len + (size_t)step) % orders.len, err);
}

static int choose_rows(struct screen *screen, void *self, int rows, struct err *err)
{
	struct watching *watching = self;

	watching->choice.rows = (enum top_rows)rows;
	watching->list.selected = 0;
	return lay_out(watching, err);
}

static int switch_all(struct screen *screen, void *self, int argument, struct err *err)
{
	struct watching *watching = self;

	watching->choice.all = !watching->choice.all;
	return lay_out(watching, err);
}

static int next_event(struct screen *screen, void *self, int argument, struct err *err)
{
	struct watching *watching = self;
	const struct profile *profile = live_profile(watching->looking->top.live, false);
	uint32_t *event = &watching->choice.event, count = (uint32_t)profile_event_count(profile);

	/* Parts of an event of a hybrid CPU are shown as their sum. */
	do
		*event = (*event + 1) % count;
	while (!profile_event(profile, *event)->sampled && *event);
	return lay_out(watching, err);
}

static int pause_it(struct screen *screen, void *self, int argument, struct err *err)
{
	struct watching *watching = self;

	watching->paused = !watching->paused;
	return 0;
}

static int reset(struct screen *screen, void *self, int argument, struct err *err)
{
	struct watching *watching = self;

	live_reset(watching->looking->top.live, watching->looking->top.now);
	holders_reset(watching->looking->holders);
	screen_say(screen, "counting anew");
	return lay_out(watching, err);
}

static int set_filter(struct screen *screen, void *self, const char *text, struct err *err)
{
	struct watching *watching = self;

	strbuf_reset(&watching->filter);
	strbuf_str(&watching->filter, text);
	watching->list.selected = 0;
	return lay_out(watching, err);
}

static int ask_filter(struct screen *screen, void *self, int argument, struct err *err)
{
	struct watching *watching = self;

	screen_ask(screen, "show only what has: ", strbuf_text(&watching->filter), set_filter,
		   self);
	return 0;
}

static int tell_legend(struct screen *screen, void *self, int argument, struct err *err)
{
	return screen_tell(screen, "What the figures are", top_legend, err);
}

static const struct screen_key keys[] = {
	{{SCREEN_ENTER, 'a'}, open_lines, 0, "source", "the source of the function, as it runs"},
	{{'f'}, choose_rows, TOP_FUNCTIONS, "functions", "rows are functions"},
	{{'l'}, choose_rows, TOP_LINES, "lines", "rows are lines"},
	{{'t'}, choose_rows, TOP_THREADS, "threads", "rows are threads"},
	{{'s'}, choose_order, 0, "sort", "choose the column to sort by"},
	{{'>', '.'}, next_order, 1, NULL, "sort by the next column"},
	{{'<', ','}, next_order, -1, NULL, "sort by the column before"},
	{{'1'}, sort_by, TOP_BY_SELF, NULL, "by self (of threads: CPU), of the last seconds"},
	{{'2'}, sort_by, TOP_BY_TOTAL, NULL, "by total (GIL), of the last seconds"},
	{{'3'}, sort_by, TOP_BY_SELF | SORT_ALL, NULL, "by self, since the beginning"},
	{{'4'}, sort_by, TOP_BY_TOTAL | SORT_ALL, NULL, "by total, since the beginning"},
	{{'5'}, sort_by, TOP_BY_NAME, NULL, "by name"},
	{{'c'}, switch_all, 0, NULL, "since the beginning, or the last seconds"},
	{{SCREEN_TAB, 'e'}, next_event, 0, NULL, "rank by the next event"},
	{{'/'}, ask_filter, 0, "filter", "show only what has a word in its name or file"},
	{{'p'}, pause_it, 0, "pause", "stop what is shown, and go on"},
	{{'r', 'R'}, reset, 0, "reset", "count anew"},
	{{'i'}, tell_legend, 0, NULL, "what the figures are"},
	SCREEN_LAST_KEY,
};

/* What the screen's loop serves beside keys. */

static int show_turn(struct watching *watching, struct err *err)
{
	if (watching->paused)
		return 0;
	screen_redraw(watching->screen);
	return watching->lines ? lay_out_lines(watching->lines, err) : lay_out(watching, err);
}

static int turn(struct watching *watching, struct err *err)
{
	struct looking *looking = watching->looking;
	int ret = looking_turn(looking, err);

	if (!ret)
		ret = show_turn(watching, err);
	return ret ? ret : looking_turned(looking, err);
}

/* What is left is shown until the user has seen it. */
static int end(struct watching *watching, struct err *err)
{
	struct looking *looking = watching->looking;

	screen_unwatch(watching->screen, recorder_fd(looking->recorder));
	screen_unwatch(watching->screen, looking->look_fd);
	screen_unwatch(watching->screen, looking->turn_fd);
	looking->top.ended = true;
	watching->paused = false;
	return turn(watching, err);
}

/* An error ends it: the user sees why when the terminal is given back. */
static int or_quit(struct watching *watching, int ret, const struct err *err)
{
	if (ret) {
		watching->looking->err = *err;
		screen_quit(watching->screen);
	}
	return 0;
}

static int on_records(struct screen *screen, void *self, struct err *err)
{
	struct watching *watching = self;
	struct looking *looking = watching->looking;
	int ret = 0;

	if (looking->top.ended)
		return 1;
	ret = recorder_step(looking->recorder, err);
	if (!ret && recorder_ended(looking->recorder))
		ret = end(watching, err);
	return or_quit(watching, ret, err);
}

static int on_look(struct screen *screen, void *self, struct err *err)
{
	struct watching *watching = self;

	if (looking_timer(watching->looking->look_fd))
		holders_look(watching->looking->holders);
	return 0;
}

static int on_turn(struct screen *screen, void *self, struct err *err)
{
	struct watching *watching = self;

	return looking_timer(watching->looking->turn_fd)
		       ? or_quit(watching, turn(watching, err), err)
		       : 0;
}

static int on_signal(struct screen *screen, void *self, struct err *err)
{
	struct watching *watching = self;
	struct session *session = &watching->looking->session;

	if (!session_wake(session))
		return 0;
	if (session->pid < 0 || session->told || watching->looking->top.ended)
		screen_quit(screen);
	else
		return or_quit(watching, end(watching, err), err);
	return 0;
}

static int watch(struct watching *watching, struct err *err)
{
	struct looking *looking = watching->looking;
	const struct {
		int fd;
		int (*ready)(struct screen *screen, void *self, struct err *err);
	} watched[] = {
		{looking->session.signal_fd, on_signal},
		{recorder_fd(looking->recorder), on_records},
		{looking->look_fd, on_look},
		{looking->turn_fd, on_turn},
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < sizeof(watched) / sizeof(watched[0]); i++)
		ret = screen_watch(watching->screen, watched[i].fd, watched[i].ready, watching,
				   err);
	return ret;
}

int top_screen(struct looking *looking, struct err *err)
{
	static const struct screen_view view = {
		.name = "top",
		.keys = keys,
		.title = put_title,
		.tick = on_records,
		.tick_ms = RECORDER_STEP_MS,
	};
	static const struct screen_rows rows = {
		.count = count_rows, .prepare = prepare, .heading = put_heading, .row = put_row};
	struct watching watching = {.looking = looking, .choice = looking->setup->choice};
	int ret = screen_open(&watching.screen, err);

	watching.choice.most = ROWS_MAX;
	watching.list = (struct screen_list){.rows = &rows, .self = &watching};
	if (!ret)
		ret = recorder_start(looking->recorder, err);
	if (!ret)
		ret = watch(&watching, err);
	if (!ret)
		ret = lay_out(&watching, err);
	if (!ret)
		ret = screen_push(watching.screen, &view, &watching, &watching.list, err);
	if (!ret)
		ret = screen_run(watching.screen, err);
	screen_close(watching.screen);
	/* A program that was started to be watched ends with that. */
	session_end(&looking->session);
	screen_list_fini(&watching.list);
	top_table_fini(&watching.table);
	strbuf_fini(&watching.filter);
	strbuf_fini(&watching.order);
	strbuf_fini(&watching.head[0]);
	strbuf_fini(&watching.head[1]);
	if (!ret && looking->err.code) {
		*err = looking->err;
		ret = err->code;
	}
	return ret;
}
