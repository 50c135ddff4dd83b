#include "output/figure.h"

#include "base/text.h"

double figure_share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

uint64_t figure_innermost(const struct view_count *count)
{
	return count->split[FRAME_PYTHON] + count->split[FRAME_NATIVE] + count->split[FRAME_KERNEL];
}

static double self(const struct view_count *count, uint64_t period_total)
{
	return figure_share(count->self, period_total);
}

static double total(const struct view_count *count, uint64_t period_total)
{
	return figure_share(count->total, period_total);
}

static double self_samples(const struct view_count *count, uint64_t period_total)
{
	return (double)count->self_samples;
}

static double total_samples(const struct view_count *count, uint64_t period_total)
{
	return (double)count->total_samples;
}

static double python(const struct view_count *count, uint64_t period_total)
{
	return figure_share(count->split[FRAME_PYTHON], figure_innermost(count));
}

static double native(const struct view_count *count, uint64_t period_total)
{
	return figure_share(count->split[FRAME_NATIVE], figure_innermost(count));
}

static double kernel(const struct view_count *count, uint64_t period_total)
{
	return figure_share(count->split[FRAME_KERNEL], figure_innermost(count));
}

const struct figure figures[] = {
	{"self", "self", FIGURE_SHARE, FIGURE_ALWAYS, self},
	{"total", "total", FIGURE_SHARE, FIGURE_TOTAL, total},
	{"self_samples", "samples", FIGURE_COUNT, FIGURE_SAMPLES, self_samples},
	{"total_samples", "in total", FIGURE_COUNT, FIGURE_TOTAL_SAMPLES, total_samples},
	{"python", "py", FIGURE_PART, FIGURE_SPLIT, python},
	{"native", "nat", FIGURE_PART, FIGURE_SPLIT, native},
	{"kernel", "krn", FIGURE_PART, FIGURE_SPLIT, kernel},
	{0},
};

bool figure_absent(const struct figure *figure, const struct view_count *count)
{
	return figure->unit == FIGURE_PART && !figure_innermost(count);
}

void figure_share_text(double share, struct strbuf *out)
{
	if (share >= 0.0005)
		strbuf_printf(out, "%.1f%%", share * 100);
}

void figure_text(const struct figure *figure, const struct view_count *count, uint64_t period_total,
		 struct strbuf *out)
{
	double value = figure->of(count, period_total);
	char text[32];

	switch (figure->unit) {
	case FIGURE_SHARE:
		figure_share_text(value, out);
		break;
	case FIGURE_COUNT:
		if (value > 0) {
			text_count(text, sizeof(text), (uint64_t)value);
			strbuf_str(out, text);
		}
		break;
	case FIGURE_PART:
		if (value >= 0.005)
			strbuf_printf(out, "%.0f", value * 100);
		break;
	}
}
