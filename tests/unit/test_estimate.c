#include "profile/estimate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/*
 * Figures and intervals: first as worked out by hand, then by trial. A trial draws samples of a
 * program whose true figure is known, 1,000 times over, and asks how often the interval holds it.
 * 950 are promised; the number that hold is binomial, within 927 and 973 but for one time in a
 * thousand. The draws are the same in every run of the test.
 */
#define RUNS 1000
#define HELD_MIN 927
/* Intervals may be careful where rows have few samples, but not useless. */
#define HELD_MAX 985

static uint64_t state;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) * 0x1p-53;
}

static double normal(void)
{
	return sqrt(-2 * log(1 - uniform())) * cos(2 * acos(-1) * uniform());
}

static void near(double value, double want)
{
	if (fabs(value - want) > 1e-6 * (1 + fabs(want)))
		fail_msg("%.9g, not %.9g", value, want);
}

/* 100 samples of 1,000 cycles each, 25 of 4,000 instructions, of small rows: the relative variances
 * are 1/100 and 1/25. */
static void ratio_by_hand(void **unused)
{
	const struct estimate_sum cycles = {.sum = 100e3, .square = 100e6, .samples = 100};
	const struct estimate_sum instructions = {.sum = 100e3, .square = 400e6, .samples = 25};
	struct estimate e = estimate_ratio(&instructions, &cycles);
	double factor = exp(1.959963984540054 * sqrt(1. / 100 + 1. / 25));

	assert_true(e.known);
	near(e.value, 1);
	near(e.low, 1 / factor);
	near(e.high, factor);
}

/* A row with 60 of 100 samples: its sum's variance is n p (1 - p) = 24 squares of the period. */
static void share_of_a_whole_by_hand(void **unused)
{
	const struct estimate_sum row = {
		.sum = 60e3,
		.square = 60e6,
		.samples = 60,
		.whole = 100e3,
		.whole_square = 100e6,
		.whole_samples = 100,
	};
	struct estimate e = estimate_count(&row);

	near(e.value, 60e3);
	near(e.high / e.value, exp(1.959963984540054 * sqrt(24. / 3600)));
}

/* All samples are the row's: only the ends are in doubt, by a twelfth of a period's square. */
static void whole_row_is_nearly_certain(void **unused)
{
	const struct estimate_sum row = {
		.sum = 100e3,
		.square = 100e6,
		.samples = 100,
		.whole = 100e3,
		.whole_square = 100e6,
		.whole_samples = 100,
	};
	struct estimate e = estimate_count(&row);

	near(e.high / e.value, exp(1.959963984540054 * sqrt(1. / 12) / 100));
}

/* Pairs (cycles, instructions): (100, 50), (100, 150), (200, 200). R = 1; the residuals are -50, 50
 * and 0, their squares 5,000; deviation sqrt(5000 * 3/2) / 400; t of 2 degrees. */
static void joint_by_hand(void **unused)
{
	const struct estimate_sum cycles = {.sum = 400, .square = 60000, .samples = 3};
	const struct estimate_sum instructions = {.sum = 400, .square = 65000, .samples = 3};
	struct estimate e = estimate_joint(&instructions, &cycles, 5000 + 15000 + 40000);
	double half = 4.3027 * sqrt(7500) / 400;

	near(e.value, 1);
	near(e.low, half < 1 ? 1 - half : 0);
	near(e.high, 1 + half);
}

/* 20 of 100 equal samples: Wilson's interval of 0.2 is 0.1334 to 0.2888. */
static void part_by_hand(void **unused)
{
	const struct estimate_sum part = {.sum = 20e3, .square = 20e6, .samples = 20};
	const struct estimate_sum row = {.sum = 100e3, .square = 100e6, .samples = 100};
	struct estimate e = estimate_part(&part, &row);

	near(e.value, 0.2);
	assert_true(fabs(e.low - 0.1334) < 1e-4 && fabs(e.high - 0.2888) < 1e-4);
}

static void mean_by_hand(void **unused)
{
	/* 1, 2, 3: variance of the mean is 1/3; t of 2 degrees. */
	struct estimate e = estimate_mean(6, 14, 3);

	near(e.value, 2);
	near(e.high - e.value, 4.3027 * sqrt(1. / 3));
}

static void nothing_below_is_unknown(void **unused)
{
	const struct estimate_sum none = {0}, some = {.sum = 10, .square = 100, .samples = 1};

	assert_false(estimate_ratio(&some, &none).known);
	assert_false(estimate_joint(&some, &none, 0).known);
	assert_false(estimate_joint(&some, &some, 100).known); /* one pair tells no spread */
	assert_false(estimate_part(&none, &none).known);
	assert_false(estimate_mean(1, 1, 1).known);
}

/* No miss was sampled, of which one is due in 1,000: fewer than 3 hits by 95%. */
static void none_above_has_an_upper_end(void **unused)
{
	const struct estimate_sum cycles = {
		.sum = 1e6,
		.square = 1e9,
		.samples = 1000,
		.whole = 1e9,
		.whole_square = 1e12,
		.whole_samples = 1000000,
	};
	const struct estimate_sum misses = {
		.whole = 1e5,
		.whole_square = 1e8,
		.whole_samples = 100,
	};
	struct estimate e = estimate_ratio(&misses, &cycles);

	assert_true(e.known && e.value == 0 && e.low == 0);
	assert_true(e.high > 2.99e-3 && e.high < 3.3e-3);
}

static void quantiles_of_student(void **unused)
{
	near(estimate_t(1), 12.7062);
	assert_true(fabs(estimate_t(15) - 2.1314) < 1e-3);
	assert_true(fabs(estimate_t(30) - 2.0423) < 1e-3);
	assert_true(fabs(estimate_t(1000) - 1.9623) < 1e-3);
	assert_true(isinf(estimate_t(0)));
}

/* An event of which `samples` were taken, in `share` of a row; by frequency, periods vary. */
struct drawn {
	unsigned int samples;
	double share, period;
	int by_frequency;
};

static struct estimate_sum draw(const struct drawn *event)
{
	struct estimate_sum s = {0};

	for (unsigned int i = 0; i < event->samples; i++) {
		double weight = event->period * (event->by_frequency ? 0.5 + uniform() : 1);
		int hit = uniform() < event->share;

		s.whole += weight;
		s.whole_square += weight * weight;
		s.whole_samples++;
		if (!hit)
			continue;
		s.sum += weight;
		s.square += weight * weight;
		s.samples++;
	}
	return s;
}

static void held(const char *what, unsigned int times)
{
	print_message("%s: %u of %u\n", what, times, RUNS);
	if (times < HELD_MIN || times > HELD_MAX)
		fail_msg("%s: the interval holds the truth %u times of %u", what, times, RUNS);
}

static int holds(const struct estimate *e, double truth)
{
	return e->known && e->low <= truth && truth <= e->high;
}

static void ratio_holds(void **unused)
{
	static const struct {
		const char *what;
		struct drawn above, below;
	} cases[] = {
		{"large row", {800, 0.6, 5000, 0}, {2000, 0.3, 1e6, 0}},
		{"small row", {3000, 0.01, 5000, 0}, {3000, 0.02, 1e6, 0}},
		{"most of the program", {400, 0.9, 5000, 0}, {900, 0.95, 1e6, 0}},
		{"by frequency", {1500, 0.2, 5000, 1}, {1500, 0.1, 1e6, 1}},
		{"few samples", {100, 0.1, 5000, 0}, {100, 0.12, 1e6, 0}},
	};

	state = 0x9e3779b97f4a7c15;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct drawn *a = &cases[i].above, *b = &cases[i].below;
		double truth = a->samples * a->share * a->period /
			       (b->samples * b->share * b->period);
		unsigned int times = 0;

		for (int run = 0; run < RUNS; run++) {
			struct estimate_sum above = draw(a), below = draw(b);
			struct estimate e = estimate_ratio(&above, &below);

			times += (unsigned int)holds(&e, truth);
		}
		held(cases[i].what, times);
	}
}

/* Group reads: cycles of about a period per sample, instructions of them at the row's own rate,
 * which swings by `swing` from sample to sample. */
static void joint_holds(void **unused)
{
	static const struct {
		const char *what;
		unsigned int samples;
		double ratio, swing;
	} cases[] = {
		{"many samples", 500, 0.4, 0.3},
		{"ten samples", 10, 2.3, 0.3},
		{"three samples", 3, 1, 0.1},
	};

	state = 0x2545f4914f6cdd1d;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int times = 0;

		for (int run = 0; run < RUNS; run++) {
			struct estimate_sum a = {0}, b = {0};
			double product = 0;
			struct estimate e;

			for (unsigned int n = 0; n < cases[i].samples; n++) {
				double cycles = 1e6 * (0.8 + 0.4 * uniform());
				double done = cycles * cases[i].ratio *
					      (1 + cases[i].swing * normal());

				a.sum += done;
				a.square += done * done;
				b.sum += cycles;
				b.square += cycles * cycles;
				product += done * cycles;
			}
			a.samples = b.samples = cases[i].samples;
			e = estimate_joint(&a, &b, product);
			times += (unsigned int)holds(&e, cases[i].ratio);
		}
		held(cases[i].what, times);
	}
}

static void part_holds(void **unused)
{
	static const struct drawn cases[] = {
		{400, 0.3, 1e6, 0},
		{60, 0.05, 1e6, 0},
		{300, 0.98, 1e6, 1},
	};

	state = 0xd1342543de82ef95;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		unsigned int times = 0;

		for (int run = 0; run < RUNS; run++) {
			struct estimate_sum part = draw(&cases[i]);
			struct estimate_sum row = {
				.sum = part.whole,
				.square = part.whole_square,
				.samples = part.whole_samples,
			};
			struct estimate e = estimate_part(&part, &row);

			times += (unsigned int)holds(&e, cases[i].share);
		}
		held("part", times);
	}
}

static void mean_holds(void **unused)
{
	unsigned int times = 0;

	state = 0xaf251af3b0f025b5;
	for (int run = 0; run < RUNS; run++) {
		double sum = 0, square = 0;
		struct estimate e;

		for (int n = 0; n < 40; n++) {
			double latency = 100 + 40 * normal();

			sum += latency;
			square += latency * latency;
		}
		e = estimate_mean(sum, square, 40);
		times += (unsigned int)holds(&e, 100);
	}
	held("mean", times);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ratio_by_hand),
		cmocka_unit_test(share_of_a_whole_by_hand),
		cmocka_unit_test(whole_row_is_nearly_certain),
		cmocka_unit_test(joint_by_hand),
		cmocka_unit_test(part_by_hand),
		cmocka_unit_test(mean_by_hand),
		cmocka_unit_test(nothing_below_is_unknown),
		cmocka_unit_test(none_above_has_an_upper_end),
		cmocka_unit_test(quantiles_of_student),
		cmocka_unit_test(ratio_holds),
		cmocka_unit_test(joint_holds),
		cmocka_unit_test(part_holds),
		cmocka_unit_test(mean_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
