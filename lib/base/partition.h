#ifndef PYPERF_PARTITION_H
#define PYPERF_PARTITION_H

#include <stddef.h>

/*
 * Binary search: items are sorted so that a condition holds for those in front and for none behind.
 * How many it holds for, which is the index of the first one that it does not; `it` names a pointer
 * to the item in the condition.
 *
 *      size_t at = partition_point(ranges.items, ranges.len, range, range->end <= addr);
 */
#define partition_point(items, count, it, condition)                     \
	__extension__({                                                  \
		size_t low_ = 0, high_ = (count);                        \
		while (low_ < high_) {                                   \
			size_t mid_ = low_ + (high_ - low_) / 2;         \
			const __typeof__(*(items)) *it = (items) + mid_; \
			if (condition)                                   \
				low_ = mid_ + 1;                         \
			else                                             \
				high_ = mid_;                            \
		}                                                        \
		low_;                                                    \
	})

#endif
