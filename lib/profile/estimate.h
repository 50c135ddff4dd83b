#ifndef PYPERF_ESTIMATE_H
#define PYPERF_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * How sure a figure is: ratios of sampled counts with their 95% intervals.
 *
 * A row (a line, a function) has got a part of an event's samples; each sample weighs what it
 *stands for, its period or the counts since the sample before it. `sum` adds the weights up,
 *`square` the squares of the weights.
 *
 * Two events sampled each on its own: the number of samples that hit the row is left to chance.
 *With independent hits the variance of the row's sum is that of a share of a known whole,
 *
 *	(1 - p)^2 square + p^2 (whole_square - square)        p = sum / whole
 *
 * (the squares of the weights alone, as for Poisson counts, where the row is small), and never less
 * than that of one sample's worth, which is in doubt at the ends. The ratio's logarithm has the sum
 * of both relative variances (delta method), hence the interval R / f .. R f.
 *
 * Counts that were read at the same samples: what is left to chance is how far each sample's pair
 * (a, b) lies off the row's ratio. The ratio estimator's variance is
 *
 *	sum (a - R b)^2 / sum_b^2 * n / (n - 1)               interval R -+ t(n-1) * deviation
 *
 * which needs the sum of the products a b besides the squares.
 *
 * Nothing here knows events or profiles: `pyperf stat` feeds repeated runs to it.
 */
struct estimate_sum {
	double sum, square;
	uint64_t samples;
	/* Of all rows; 0 where they are not known: then the row counts as a small part. */
	double whole, whole_square;
	uint64_t whole_samples;
};

struct estimate {
	double value, low, high; /* high may be infinite */
	bool known;		 /* false: nothing was counted below the line, or too little */
	bool few;		 /* pairs, fewer than ESTIMATE_LEAST: see estimate_joint() */
};

/* above / below of events that were sampled each on its own. */
struct estimate estimate_ratio(const struct estimate_sum *above, const struct estimate_sum *below);
/* Of counts read at the same `below->samples` samples; `product`: the sum of their products. Few
 * pairs lie close together by chance every now and then: who takes the narrow intervals alone, and
 * no others, is wrong with them far more often than in 5% of all cases (with 3 pairs in 40%). */
#define ESTIMATE_LEAST 8
struct estimate estimate_joint(const struct estimate_sum *above, const struct estimate_sum *below,
			       double product);
/* The share of a row that a part of its own samples has; `part` and `row` of one event. */
struct estimate estimate_part(const struct estimate_sum *part, const struct estimate_sum *row);
/* The row's sum itself. */
struct estimate estimate_count(const struct estimate_sum *sum);
/* Mean of n values with this sum and these squares. */
struct estimate estimate_mean(double sum, double square, uint64_t n);

struct estimate estimate_scaled(struct estimate estimate, double factor);

/* 97.5% point of Student's distribution. */
double estimate_t(uint64_t degrees);

#endif
