#ifndef PYPERF_VEC_H
#define PYPERF_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * A growing array of any type, declared in place:
 *
 *      struct { VEC_OF(struct sample) } samples = {0};
 *
 *      struct sample *s = vec_push(&samples);          NULL when memory runs out; zeroed
 *      for (size_t i = 0; i < samples.len; i++) use(&samples.items[i]);
 *      vec_fini(&samples);
 *
 * Pushing may move the items: keep indices, not pointers.
 */
#define VEC_OF(type) \
	type *items; \
	size_t len, cap;

#define vec_push(v)                                                                    \
	((__typeof__((v)->items))vec_push_((void **)&(v)->items, &(v)->len, &(v)->cap, \
					   sizeof(*(v)->items)))

/* Makes room for `n` items in all; false when memory runs out. */
#define vec_reserve(v, n) vec_reserve_((void **)&(v)->items, &(v)->cap, (n), sizeof(*(v)->items))

#define vec_fini(v)                      \
	do {                             \
		free((v)->items);        \
		(v)->items = NULL;       \
		(v)->len = (v)->cap = 0; \
	} while (0)

bool vec_reserve_(void **items, size_t *cap, size_t want, size_t size);
void *vec_push_(void **items, size_t *len, size_t *cap, size_t size);

#endif
