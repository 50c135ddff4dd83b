#include "profile/hybrid.h"

#include "profile/store.h"

#include <string.h>

#define HOMES_MAX 1024 /* looked at for each event: no recording samples more */

/* "cpu_core/cycles/u", or as perf before 6.5 wrote it "cpu_core/cycles:u/". */
struct parts {
	size_t pmu, plain; /* lengths */
	const char *name, *modifiers;
};

static bool split(const char *name, struct parts *parts)
{
	const char *first = strchr(name, '/'), *last = strrchr(name, '/');

	if (!first || first == name || last <= first + 1)
		return false;
	*parts = (struct parts){.pmu = (size_t)(first - name),
				.plain = (size_t)(last - first) - 1,
				.name = first + 1,
				.modifiers = last + 1};
	/* Of "event=0x3c" each PMU makes what it will. */
	return !memchr(parts->name, '=', parts->plain);
}

static bool is_generic(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_HARDWARE || attr->type == PERF_TYPE_HW_CACHE;
}

/* Are both counted in the same modes, and sampled in the same way? */
static bool are_alike(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	return is_generic(a) == is_generic(b) && a->freq == b->freq &&
	       a->sample_period == b->sample_period && a->exclude_user == b->exclude_user &&
	       a->exclude_kernel == b->exclude_kernel && a->exclude_guest == b->exclude_guest &&
	       a->exclude_host == b->exclude_host;
}

/* Is `a` another PMU's part of `b`, whose name is split already? */
static bool is_part(const struct profile_event *a, const struct profile_event *b,
		    const struct parts *y)
{
	struct parts x;

	return split(a->name, &x) && are_alike(&a->attr, &b->attr) && x.plain == y->plain &&
	       memcmp(x.name, y->name, x.plain) == 0 && strcmp(x.modifiers, y->modifiers) == 0 &&
	       (x.pmu != y->pmu || memcmp(a->name, b->name, x.pmu) != 0);
}

uint32_t hybrid_home(const struct profile *profile, uint32_t event)
{
	const struct profile_event *part = &profile->events.items[event];
	struct parts parts;

	if (!split(part->name, &parts))
		return event;
	for (uint32_t i = 0; i < event && i < HOMES_MAX; i++)
		if (is_part(&profile->events.items[i], part, &parts))
			return i;
	return event;
}

static int rename_home(struct profile *profile, struct profile_event *home, struct err *err)
{
	struct strbuf name = {0};
	struct parts parts;

	if (!split(home->name, &parts))
		return 0; /* by another part already */
	strbuf_printf(&name, "%.*s%s%s", (int)parts.plain, parts.name, *parts.modifiers ? ":" : "",
		      parts.modifiers);
	home->name = profile_keep(profile, strbuf_text(&name));
	strbuf_fini(&name);
	return home->name ? 0 : err_nomem(err);
}

static void move_counts(struct profile_event *home, struct profile_event *part)
{
	home->samples += part->samples;
	home->period_total += part->period_total;
	home->estimated_total += part->estimated_total;
	home->throttled += part->throttled;
	home->throttled_ns += part->throttled_ns;
	home->enabled_ns += part->enabled_ns;
	home->running_ns += part->running_ns;
	home->missed += part->missed;
	home->exact &= part->exact;
	home->exact_total += part->exact_total;
	part->samples = part->period_total = part->throttled = 0;
	part->throttled_ns = part->enabled_ns = part->running_ns = 0;
	part->estimated_total = part->missed = part->exact_total = 0;
	part->sampled = false;
}

/* Of two PMUs' pairs of the same events the second gives its products to the first. */
static void join_pairs(struct profile *profile, const uint32_t *homes)
{
	for (uint32_t i = 0; i < profile->pairs.count; i++) {
		struct profile_pair *pair = keyed_at(&profile->pairs, i);
		uint32_t a = homes[pair->a], b = homes[pair->b];

		*pair = (struct profile_pair){a < b ? a : b, a < b ? b : a};
	}
	for (uint32_t i = 0; i < profile->products.count; i++) {
		struct profile_product *product = keyed_at(&profile->products, i);
		const struct profile_pair *pair = keyed_at(&profile->pairs, product->pair);
		uint32_t first = 0;

		while (memcmp(keyed_at(&profile->pairs, first), pair, sizeof(*pair)) != 0)
			first++;
		product->pair = first;
	}
}

int hybrid_join_events(struct profile *profile, const uint32_t *homes, struct err *err)
{
	bool any = false;
	int ret = 0;

	for (uint32_t i = 0; i < profile->events.len && !ret; i++) {
		struct profile_event *event = &profile->events.items[i];

		if (event->group)
			event->group = homes[event->group - 1] + 1;
		if (homes[i] == i)
			continue;
		move_counts(&profile->events.items[homes[i]], event);
		ret = rename_home(profile, &profile->events.items[homes[i]], err);
		any = true;
	}
	return ret ? ret : any;
}

int hybrid_join(struct profile *profile, const uint32_t *homes, struct err *err)
{
	int any = hybrid_join_events(profile, homes, err);

	if (any <= 0)
		return any;
	/* A thread that ran on both has two cells of one stack: whoever reads cells adds them up.
	 */
	for (uint32_t i = 0; i < profile->cells.count; i++) {
		struct profile_cell *cell = keyed_at(&profile->cells, i);

		cell->event = homes[cell->event];
	}
	join_pairs(profile, homes);
	return 0;
}
