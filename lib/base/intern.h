#ifndef PYPERF_INTERN_H
#define PYPERF_INTERN_H

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Each distinct byte string once, named by a small id.
 *
 * Ids are dense and start at 1; 0 is the empty string and is always there. Bytes may hold NULs;
 * a NUL follows them, so text can be used as a C string. Text and ids stay valid until
 * intern_fini(). Hashing is XXH3.
 */
struct intern {
	struct arena arena;
	struct intern_entry *entries;
	uint32_t *slots;
	uint32_t count, cap, slot_cap;
};

/* Returned when memory runs out; never a valid id. */
#define INTERN_NONE UINT32_MAX

void intern_init(struct intern *intern);
void intern_fini(struct intern *intern);
uint32_t intern_add(struct intern *intern, const void *bytes, size_t len);
uint32_t intern_str(struct intern *intern, const char *text);
/* The id, or INTERN_NONE where it was never added. */
uint32_t intern_find(const struct intern *intern, const void *bytes, size_t len);
/* Text of any id; "" for one that is unknown. *len may be NULL. */
const char *intern_text(const struct intern *intern, uint32_t id, size_t *len);

#endif
