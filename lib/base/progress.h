#ifndef PYPERF_PROGRESS_H
#define PYPERF_PROGRESS_H

#include <stdint.h>

/*
 * How far long work has come, for whom it may concern.
 *
 * Libraries name what they do and count on; cmd/ sets who is told. Without one, and between two
 * moments at which there is something to tell, counting on is one comparison. Of works that go on
 * at the same time the one that started last is told of. Only the main thread counts.
 */
enum progress_unit { PROGRESS_BYTES, PROGRESS_COUNT };

struct progress {
	const char *what; /* "reading records"; NULL: nothing goes on */
	enum progress_unit unit;
	uint64_t done, total; /* total 0: not known */
};

typedef void progress_sink(const struct progress *progress);

/* NULL: nobody is told. The sink is called about ten times a second, and when the work ends. */
void progress_set_sink(progress_sink *sink);

/* The number of the work, which never is 0. `what` lives on. */
uint32_t progress_start(const char *what, enum progress_unit unit, uint64_t total);
void progress_end(uint32_t work);

/* Not for callers. */
extern uint64_t progress_due;
void progress_tell(uint32_t work, uint64_t done);

/* So much is done, since the start. */
static inline void progress_at(uint32_t work, uint64_t done)
{
	if (__builtin_expect(done >= progress_due, 0))
		progress_tell(work, done);
}

#endif
