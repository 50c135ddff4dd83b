#include "process/mapset.h"

#include "base/partition.h"

#include <stdlib.h>
#include <string.h>

struct mapset *mapset_new(uint64_t generation)
{
	struct mapset *set = calloc(1, sizeof(*set));

	if (set) {
		set->users = 1;
		set->generation = generation;
	}
	return set;
}

static bool append(struct mapset *set, const struct mapset *from)
{
	if (!vec_reserve(set, set->len + from->len))
		return false;
	if (from->len)
		memcpy(set->items + set->len, from->items, from->len * sizeof(*from->items));
	set->len += from->len;
	return true;
}

struct mapset *mapset_share(struct mapset *set)
{
	set->users++;
	return set;
}

void mapset_release(struct mapset *set)
{
	if (!set || --set->users)
		return;
	mapset_release(set->base);
	vec_fini(set);
	free(set);
}

/* The first entry that ends above the address: the one that covers it, or the next one. */
static size_t lower_bound(const struct mapset *set, uint64_t addr)
{
	return partition_point(set->items, set->len, entry, entry->end <= addr);
}

/* Puts `count` entries in the place of items[from..to). */
static bool splice(struct mapset *set, size_t from, size_t to, const struct mapset_entry *entries,
		   size_t count)
{
	if (!vec_reserve(set, set->len - (to - from) + count))
		return false;
	memmove(set->items + from + count, set->items + to, (set->len - to) * sizeof(*entries));
	memcpy(set->items + from, entries, count * sizeof(*entries));
	set->len = set->len - (to - from) + count;
	set->last = from;
	return true;
}

bool mapset_replace(struct mapset *set, const struct mapset_entry *entry)
{
	struct mapset_entry parts[3];
	size_t from = lower_bound(set, entry->start), to = from, count = 0;

	while (to < set->len && set->items[to].start < entry->end)
		to++;
	if (to > from && set->items[from].start < entry->start) {
		parts[count] = set->items[from];
		parts[count++].end = entry->start;
	}
	parts[count++] = *entry;
	if (to > from && set->items[to - 1].end > entry->end) {
		parts[count] = set->items[to - 1];
		parts[count].pgoff += entry->end - parts[count].start;
		parts[count++].start = entry->end;
	}
	return splice(set, from, to, parts, count);
}

bool mapset_fill(struct mapset *set, const struct mapset_entry *entry)
{
	struct mapset_entry piece = *entry;
	size_t at = lower_bound(set, entry->start);

	while (piece.start < entry->end) {
		uint64_t limit = at < set->len ? set->items[at].start : UINT64_MAX;

		piece.pgoff = entry->pgoff + (piece.start - entry->start);
		piece.end = limit < entry->end ? limit : entry->end;
		if (piece.start < piece.end) {
			if (!splice(set, at, at, &piece, 1))
				return false;
			at++;
		}
		if (at == set->len)
			break;
		piece.start = set->items[at++].end;
	}
	return true;
}

/* The entry itself, by way of the last one; `last` is then lower_bound(). */
static const struct mapset_entry *find_own(struct mapset *set, uint64_t addr)
{
	const struct mapset_entry *entry;

	if (!set->len)
		return NULL;
	entry = &set->items[set->last < set->len ? set->last : 0];
	if (addr >= entry->start && addr < entry->end)
		return entry;
	set->last = lower_bound(set, addr);
	if (set->last == set->len)
		return NULL;
	entry = &set->items[set->last];
	return addr >= entry->start ? entry : NULL;
}

/* Leaves of an entry of the base what the entries around the last look-up do not cover. */
static void clip(const struct mapset *set, struct mapset_entry *found)
{
	if (!set->len)
		return;
	if (set->last < set->len && set->items[set->last].start < found->end)
		found->end = set->items[set->last].start;
	if (set->last && set->items[set->last - 1].end > found->start) {
		found->pgoff += set->items[set->last - 1].end - found->start;
		found->start = set->items[set->last - 1].end;
	}
}

bool mapset_find(struct mapset *set, uint64_t addr, struct mapset_entry *found)
{
	const struct mapset_entry *entry = find_own(set, addr);

	if (entry) {
		*found = *entry;
		return true;
	}
	entry = set->base ? find_own(set->base, addr) : NULL;
	if (!entry)
		return false;
	*found = *entry;
	clip(set, found);
	return true;
}

/* Entries over a base that are copied one by one; more become part of a base. */
#define OVERLAY_MAX 64

/* Takes the base's entries into the set, which maps the same as before. */
static bool flatten(struct mapset *set)
{
	struct mapset whole = {0};

	if (!append(&whole, set->base))
		return false;
	for (size_t i = 0; i < set->len; i++)
		if (!mapset_replace(&whole, &set->items[i])) {
			vec_fini(&whole);
			return false;
		}
	vec_fini(set);
	set->items = whole.items;
	set->len = whole.len;
	set->cap = whole.cap;
	set->last = 0;
	mapset_release(set->base);
	set->base = NULL;
	return true;
}

struct mapset *mapset_copy(struct mapset *from, uint64_t generation)
{
	struct mapset *set = mapset_new(generation);

	if (!set)
		return NULL;
	if (from->len > OVERLAY_MAX) {
		if (from->base && !flatten(from)) {
			mapset_release(set);
			return NULL;
		}
		set->base = mapset_share(from);
		return set;
	}
	if (!append(set, from)) {
		mapset_release(set);
		return NULL;
	}
	if (from->base)
		set->base = mapset_share(from->base);
	return set;
}
