#include "record/traces.h"

#include "arch/arch.h"
#include "base/clock.h"
#include "data/writer.h"

int traces_find(const struct event_spec **traced, const struct recorder_options *options,
		const struct pythons *pythons, struct err *err)
{
	*traced = NULL;
	for (size_t i = 0; i < options->events->len; i++) {
		const struct event_spec *spec = &options->events->items[i];

		if (!spec->traces)
			continue;
		if (*traced)
			return err_set(err, ERR_UNSUPPORTED,
				       "%s and %s both trace: only one at a time can be recorded",
				       (*traced)->name, spec->name);
		*traced = spec;
	}
	if (*traced && (options->counting || options->listener)) {
		err_set(err, ERR_UNSUPPORTED, "%s writes a trace, which counts nothing",
			(*traced)->name);
		err_hint(err, "pyperf record -e %s makes a recording of it", (*traced)->name);
		return ERR_UNSUPPORTED;
	}
	if (*traced && pythons_open_events(pythons)) {
		err_set(err, ERR_UNSUPPORTED,
			"%s writes a trace, for which no thread can be stopped to read its frames",
			(*traced)->name);
		err_hint(err, "add --python=off");
		return ERR_UNSUPPORTED;
	}
	return 0;
}

struct traces_clock traces_clock_of(uint64_t ticks, uint64_t hz, uint64_t ns)
{
	struct traces_clock clock = {.shift = 32};

	/* perf keeps the multiplier in 32 bits. */
	do
		clock.mult = (uint64_t)(((unsigned __int128)1000000000 << --clock.shift) / hz);
	while (clock.mult > UINT32_MAX);
	clock.zero = ns - (uint64_t)((unsigned __int128)ticks * clock.mult >> clock.shift);
	return clock;
}

bool traces_clock_now(struct traces_clock *clock)
{
	uint64_t ticks, hz;

	if (!arch_counter(&ticks, &hz))
		return false;
	*clock = traces_clock_of(ticks, hz, clock_now_ns());
	return true;
}

static int tell_clock(const struct outlet *out, const struct traces_clock *clock, struct err *err)
{
	struct {
		struct perf_event_header header;
		uint64_t shift, mult, zero, cycles, mask;
		uint8_t has_zero, wraps, reserved[6];
	} record = {
		.header = {.type = RECORD_TIME_CONV, .size = sizeof(record)},
		.shift = clock->shift,
		.mult = clock->mult,
		.zero = clock->zero,
		.mask = UINT64_MAX,
		.has_zero = 1,
	};

	return out->record(out, &record.header, err);
}

int traces_tell(const struct outlet *out, uint32_t pmu, const struct traces_clock *clock,
		struct err *err)
{
	const struct {
		struct perf_event_header header;
		uint32_t kind, reserved;
		uint64_t pmu, of_cpus;
	} record = {
		.header = {.type = RECORD_AUXTRACE_INFO, .size = sizeof(record)},
		.kind = DATA_TRACE_ARM_SPE,
		.pmu = pmu,
		.of_cpus = 1,
	};
	int ret = clock ? tell_clock(out, clock, err) : 0;

	return ret ? ret : out->record(out, &record.header, err);
}

int traces_take(struct channels *channels, size_t channel, uint32_t tid, struct data_writer *writer,
		uint64_t *bytes, struct err *err)
{
	struct channel *from = &channels->items[channel];
	struct data_trace_piece piece = {
		.buffer = (uint32_t)channel, .tid = tid, .cpu = (uint32_t)from->cpu};
	int ret;

	if (!aux_begin(&from->aux, piece.parts))
		return 0;
	piece.offset = from->aux.tail;
	*bytes += from->aux.head - from->aux.tail;
	ret = data_write_trace(writer, &piece, err);
	aux_end(&from->aux);
	return ret;
}
