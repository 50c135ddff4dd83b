#include "profile/estimate.h"

#include <math.h>

#define Z 1.959963984540054 /* 97.5% point of the normal distribution */
/* No event in n trials: the rate is below NONE / n with 95% (Poisson, "rule of three"). */
#define NONE 2.995732273553991

double estimate_t(uint64_t degrees)
{
	static const double exact[] = {
		INFINITY, 12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469,
		2.3646,	  2.3060,  2.2622, 2.2281, 2.2010, 2.1788,
	};
	double n = (double)degrees;

	if (degrees < sizeof(exact) / sizeof(exact[0]))
		return exact[degrees];
	/* Abramowitz and Stegun 26.7.5 */
	return Z + (pow(Z, 3) + Z) / (4 * n) +
	       (5 * pow(Z, 5) + 16 * pow(Z, 3) + 3 * Z) / (96 * n * n);
}

static struct estimate unknown(void)
{
	return (struct estimate){.high = INFINITY};
}

/* What one sample stands for. */
static double mean_weight(const struct estimate_sum *s)
{
	if (s->whole_samples)
		return s->whole / (double)s->whole_samples;
	return s->samples ? s->sum / (double)s->samples : 0;
}

static double variance(const struct estimate_sum *s)
{
	double least = mean_weight(s), rest = s->whole_square - s->square, p, v;

	if (s->whole <= 0)
		return s->square;
	p = s->sum < s->whole ? s->sum / s->whole : 1;
	v = (1 - p) * (1 - p) * s->square + p * p * (rest > 0 ? rest : 0);
	/* A sum of whole periods is off by an even part of one: a twelfth of its square. */
	least = least * least / 12;
	return v > least ? v : least;
}

/* The interval of value * exp(N(0, relative)). */
static struct estimate spread(double value, double relative)
{
	double factor = exp(Z * sqrt(relative));

	return (struct estimate){value, value / factor, value * factor, .known = true};
}

struct estimate estimate_count(const struct estimate_sum *sum)
{
	if (sum->sum <= 0)
		return (struct estimate){0, 0, NONE * mean_weight(sum), .known = true};
	return spread(sum->sum, variance(sum) / (sum->sum * sum->sum));
}

struct estimate estimate_ratio(const struct estimate_sum *above, const struct estimate_sum *below)
{
	struct estimate out;

	if (below->sum <= 0)
		return unknown();
	if (above->sum > 0)
		return spread(above->sum / below->sum,
			      variance(above) / (above->sum * above->sum) +
				      variance(below) / (below->sum * below->sum));
	/* None was hit: at most what three hits would be, over the least that is below. */
	out = estimate_count(below);
	return (struct estimate){0, 0, NONE * mean_weight(above) / out.low, .known = true};
}

/* Squares that cancel out may leave a little less than nothing. */
static double positive(double value)
{
	return value > 0 ? value : 0;
}

static struct estimate around(double value, double deviation, uint64_t samples)
{
	double half = estimate_t(samples - 1) * deviation;

	return (struct estimate){value, positive(value - half), value + half, .known = true};
}

struct estimate estimate_joint(const struct estimate_sum *above, const struct estimate_sum *below,
			       double product)
{
	double n = (double)below->samples, ratio, residual;
	struct estimate out;

	if (below->sum <= 0 || below->samples < 2)
		return unknown();
	ratio = above->sum / below->sum;
	residual = above->square - 2 * ratio * product + ratio * ratio * below->square;
	out = around(ratio, sqrt(positive(residual) * n / (n - 1)) / below->sum, below->samples);
	out.few = below->samples < ESTIMATE_LEAST;
	return out;
}

struct estimate estimate_part(const struct estimate_sum *part, const struct estimate_sum *row)
{
	double p, v, n;

	if (row->sum <= 0 || !row->samples)
		return unknown();
	p = part->sum / row->sum;
	v = (1 - p) * (1 - p) * part->square + p * p * positive(row->square - part->square);
	v /= row->sum * row->sum;
	/* Wilson's interval, by the number of equal samples that would be as sure: it keeps its
	 * promise at 0 and 1, where the plain one has no width. */
	n = row->sum * row->sum / row->square;
	if (v > 0 && p > 0 && p < 1)
		n = p * (1 - p) / v;
	v = Z * Z / n;
	return (struct estimate){
		.value = p,
		.low = positive((p + v / 2 - sqrt(p * (1 - p) * v + v * v / 4)) / (1 + v)),
		.high = (p + v / 2 + sqrt(p * (1 - p) * v + v * v / 4)) / (1 + v),
		.known = true,
	};
}

struct estimate estimate_mean(double sum, double square, uint64_t n)
{
	double count = (double)n, mean;

	if (n < 2)
		return unknown();
	mean = sum / count;
	return around(mean, sqrt(positive(square / count - mean * mean) / (count - 1)), n);
}

struct estimate estimate_scaled(struct estimate estimate, double factor)
{
	estimate.value *= factor;
	estimate.low *= factor;
	estimate.high *= factor;
	return estimate;
}
