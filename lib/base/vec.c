#include "base/vec.h"

#include <string.h>

bool vec_reserve_(void **items, size_t *cap, size_t want, size_t size)
{
	size_t grown = *cap;
	void *moved;

	if (want <= *cap)
		return true;
	while (grown < want) {
		if (grown > SIZE_MAX / 2 / size)
			return false;
		grown = grown ? grown * 2 : 8;
	}
	moved = realloc(*items, grown * size);
	if (!moved)
		return false;
	*items = moved;
	*cap = grown;
	return true;
}

void *vec_push_(void **items, size_t *len, size_t *cap, size_t size)
{
	char *slot;

	if (!vec_reserve_(items, cap, *len + 1, size))
		return NULL;
	slot = (char *)*items + *len * size;
	memset(slot, 0, size);
	(*len)++;
	return slot;
}
