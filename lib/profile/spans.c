#include "profile/spans.h"

#include "base/partition.h"

#include <string.h>

#define NS_PER_SECOND 1000000000u

bool spans_add(struct spans *spans, uint64_t begin, uint64_t end)
{
	struct span *span = vec_push(&spans->list);

	if (span)
		*span = (struct span){begin, end};
	return span != NULL;
}

static int by_begin(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

void spans_join(struct spans *spans)
{
	struct span *items = spans->list.items;
	size_t len = 0;

	if (!spans->list.len)
		return;
	qsort(items, spans->list.len, sizeof(*items), by_begin);
	for (size_t i = 1; i < spans->list.len; i++) {
		if (items[i].begin > items[len].end)
			items[++len] = items[i];
		else if (items[i].end > items[len].end)
			items[len].end = items[i].end;
	}
	spans->list.len = len + 1;
}

bool spans_contain(const struct spans *spans, uint64_t time)
{
	size_t at = partition_point(spans->list.items, spans->list.len, span, span->begin <= time);

	return at && time <= spans->list.items[at - 1].end;
}

void spans_fini(struct spans *spans)
{
	vec_fini(&spans->list);
}

/* "12.5" as 12.5 units of `unit` each; the end of the number, or NULL. */
static const char *parse_decimal(const char *text, uint64_t unit, uint64_t *value)
{
	const char *at = text;

	*value = 0;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (*value > UINT64_MAX / unit / 16)
			return NULL;
		*value = 10 * *value + (uint64_t)(*at - '0') * unit;
	}
	if (*at == '.')
		for (at++; *at >= '0' && *at <= '9'; at++)
			*value += (uint64_t)(*at - '0') * (unit /= 10);
	return at == text ? NULL : at;
}

/* Hundredths of a percent of a range. */
static bool parse_percents(const char *text, struct span *span, uint64_t first, uint64_t last)
{
	const uint64_t unit = 1000000, whole = 100 * unit;
	uint64_t from, to;
	double range = (double)(last - first);
	const char *at = parse_decimal(text, unit, &from);

	if (!at || at[0] != '%' || at[1] != '-')
		return false;
	at = parse_decimal(at + 2, unit, &to);
	if (!at || strcmp(at, "%") != 0 || from > whole || to > whole)
		return false;
	span->begin = first + (uint64_t)(range * (double)from / (double)whole);
	span->end = to == whole ? last : first + (uint64_t)(range * (double)to / (double)whole);
	return true;
}

static bool parse_seconds(const char *text, struct span *span)
{
	const char *at = text;

	span->begin = 0;
	span->end = UINT64_MAX;
	if (*at != ',')
		at = parse_decimal(at, NS_PER_SECOND, &span->begin);
	if (!at || *at != ',')
		return false;
	if (*++at)
		at = parse_decimal(at, NS_PER_SECOND, &span->end);
	return at && !*at;
}

int spans_parse(struct spans *spans, const char *text, uint64_t first, uint64_t last,
		struct err *err)
{
	struct span span;

	if (strchr(text, '%') && !last)
		return err_set(err, ERR_UNSUPPORTED,
			       "the recording does not tell when it began and ended, so that "
			       "--time takes seconds only");
	if (!(strchr(text, '%') ? parse_percents(text, &span, first, last)
				: parse_seconds(text, &span)) ||
	    span.begin > span.end) {
		err_set(err, ERR_USAGE, "--time takes START,STOP in seconds or A%%-B%%, not '%s'",
			text);
		err_hint(err, "For example --time 10%%-20%%, or times as `pyperf script` prints "
			      "them.");
		return ERR_USAGE;
	}
	return spans_add(spans, span.begin, span.end) ? 0 : err_nomem(err);
}
