#include "screen/list.h"

#include "base/clock.h"

#include <string.h>

/* Rows that are looked at between two looks at the clock. */
#define SEARCH_BATCH 64

void screen_list_fini(struct screen_list *list)
{
	free(list->wanted);
	list->wanted = NULL;
}

size_t screen_list_count(const struct screen_list *list)
{
	return list->rows->count(list->self);
}

void screen_list_move(struct screen_list *list, long by)
{
	size_t count = screen_list_count(list);

	if (by < 0 && (size_t)-by > list->selected)
		list->selected = 0;
	else
		list->selected += (size_t)by;
	if (list->selected >= count)
		list->selected = count ? count - 1 : 0;
}

void screen_list_settle(struct screen_list *list, size_t height)
{
	size_t count = screen_list_count(list);

	list->height = height;
	screen_list_move(list, 0);
	if (list->top > list->selected)
		list->top = list->selected;
	if (height && list->selected >= list->top + height)
		list->top = list->selected - height + 1;
	/* No blank rows below the last where there are rows above the first. */
	if (list->top + height > count)
		list->top = count > height ? count - height : 0;
}

void screen_list_scroll(struct screen_list *list, long by)
{
	size_t count = screen_list_count(list);
	size_t last = count > list->height ? count - list->height : 0;

	if (by < 0)
		list->top -= (size_t)-by < list->top ? (size_t)-by : list->top;
	else
		list->top = list->top + (size_t)by < last ? list->top + (size_t)by : last;
	if (list->selected < list->top)
		list->selected = list->top;
	if (list->height && list->selected >= list->top + list->height)
		list->selected = list->top + list->height - 1;
	screen_list_move(list, 0);
}

bool screen_list_search(struct screen_list *list, const char *text, int step)
{
	size_t count = screen_list_count(list);

	if (text && *text) {
		free(list->wanted);
		list->wanted = strdup(text);
	}
	if (!list->wanted || !count)
		return false;
	list->search_step = step;
	list->search_at = list->selected;
	list->search_left = count;
	return true;
}

static bool is_match(const struct screen_list *list, size_t row, struct screen_line *line)
{
	screen_line_reset(line);
	if (list->rows->text)
		list->rows->text(list->self, row, &line->text);
	else
		list->rows->row(list->self, row, line);
	return strcasestr(strbuf_text(&line->text), list->wanted) != NULL;
}

enum screen_found screen_list_search_on(struct screen_list *list, uint64_t until_ns)
{
	size_t count = screen_list_count(list), looked = 0;
	struct screen_line line = {0};
	enum screen_found found = SCREEN_NOT_FOUND;

	while (list->search_left && found == SCREEN_NOT_FOUND) {
		if (looked++ % SEARCH_BATCH == SEARCH_BATCH - 1 && clock_now_ns() >= until_ns) {
			found = SCREEN_SEARCHING;
			break;
		}
		if (list->search_step > 0)
			list->search_at = list->search_at + 1 < count ? list->search_at + 1 : 0;
		else
			list->search_at = list->search_at ? list->search_at - 1 : count - 1;
		list->search_left--;
		if (list->search_at < count && is_match(list, list->search_at, &line)) {
			list->selected = list->search_at;
			list->search_left = 0;
			found = SCREEN_FOUND;
		}
	}
	screen_line_fini(&line);
	return found;
}
