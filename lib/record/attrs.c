#include "record/attrs.h"

#include "record/native.h"
#include "record/way.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/* perf 6.1 refuses a file with a larger one; the kernel takes any size whose tail is zero. */
#define ATTR_SIZE PERF_ATTR_SIZE_VER7

static void common(struct perf_event_attr *attr)
{
	attr->size = ATTR_SIZE;
	attr->sample_id_all = 1;
	attr->use_clockid = 1;
	/* perf before 6 wants it to be the same for all events of a file. */
	attr->read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |
			    PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr->clockid = CLOCK_MONOTONIC;
	attr->sample_type |= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			     PERF_SAMPLE_CPU;
}

static bool is_tracepoint(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_TRACEPOINT;
}

/* Linux before 5.11 knows no page sizes, before 5.12 no struct of weights. */
static bool is_known(uint64_t sample_type)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = ATTR_SIZE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = sample_type,
		.disabled = 1,
		.exclude_kernel = 1,
	};
	int fd = event_open_fd(&attr, 0, -1, -1);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool is_fault(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_PAGE_FAULTS ||
						    attr->config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
						    attr->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ);
}

/* The kernel makes a sample of each occurrence of what it counts itself, whatever the period, where
 * samples are to tell their period (perf_swevent_event() of kernel/events/core.c). */
static bool is_each(const struct perf_event_attr *attr)
{
	return is_tracepoint(attr) || (attr->type == PERF_TYPE_SOFTWARE && !event_is_clock(attr));
}

/* Does it sample loads or stores, with their latency and where the data was? */
static bool is_access(const struct event_spec *spec)
{
	static const char *const names[] = {"mem-loads", "mem-stores", "ldlat=",  "LOAD_LATENCY",
					    "ibs_op",	 "MEM_TRANS",  "mem-ldst"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcasestr(spec->name, names[i]))
			return true;
	return false;
}

/* Which memory the sample is about: see profile/memuse.h. */
static void about_memory(struct perf_event_attr *attr, const struct event_spec *spec)
{
	if (is_fault(attr)) {
		attr->sample_type |= PERF_SAMPLE_ADDR;
		if (is_known(PERF_SAMPLE_DATA_PAGE_SIZE))
			attr->sample_type |= PERF_SAMPLE_DATA_PAGE_SIZE;
	} else if (is_access(spec)) {
		attr->sample_type |= PERF_SAMPLE_ADDR | PERF_SAMPLE_DATA_SRC;
		attr->sample_type |= is_known(PERF_SAMPLE_WEIGHT_STRUCT) ? PERF_SAMPLE_WEIGHT_STRUCT
									 : PERF_SAMPLE_WEIGHT;
	}
}

/* One operation in so many: what Arm's cores can do at the least, where the least is not known. */
#define TRACE_PERIOD 4096

/* Of records that go to the ring there are those that tell of the trace. The source of data says to
 * perf that it has some. */
static void attr_traced(struct perf_event_attr *attr, const struct recorder_options *options)
{
	attr->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_DATA_SRC;
	attr->context_switch = 1; /* for kernels that do not let the trace say who runs */
	if (attr->freq || !attr->sample_period)
		attr->sample_period = options->period ? options->period : TRACE_PERIOD;
	attr->freq = 0;
}

static void attr_rate(struct perf_event_attr *attr, const struct recorder_options *options)
{
	/* Tracepoints and faults are told of one by one: which page was touched where. */
	if (attr->sample_period) {
		; /* or sample_freq: the event's own terms have it */
	} else if ((is_tracepoint(attr) || is_fault(attr)) && !options->rate_given) {
		attr->sample_period = 1;
	} else if (options->period) {
		attr->sample_period = options->period;
	} else {
		attr->freq = 1;
		attr->sample_freq = options->frequency;
	}
	if (is_each(attr) && !attr->freq && attr->sample_period > 1)
		attr->sample_type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
}

static void attr_samples(struct perf_event_attr *attr, const struct event_spec *spec,
			 const struct recorder_options *options, const struct native *native)
{
	attr->sample_type |= PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD;
	if (options->chain != RECORDER_CHAIN_NONE)
		attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (options->chain == RECORDER_CHAIN_LBR)
		way_lbr_attr(attr);
	if (native)
		native_attr(native, attr);
	if (is_tracepoint(attr))
		attr->sample_type |= PERF_SAMPLE_RAW;
	about_memory(attr, spec);
	attr_rate(attr, options);
}

void attr_sampled(struct perf_event_attr *attr, const struct event_spec *spec,
		  const struct recorder_options *options, enum recorder_target_kind kind,
		  const struct native *native)
{
	*attr = spec->attr;
	common(attr);
	if (spec->traces)
		attr_traced(attr, options);
	else
		attr_samples(attr, spec, options, native);
	attr->inherit = kind != RECORDER_CPUS && !options->no_inherit;
	/* Cycles do not count while a CPU idles; nor does what stands in for them. */
	attr->exclude_idle = spec->fallback;
	/* Only leaders are switched; members count while their leader does. */
	attr->disabled = spec->leader;
	attr->enable_on_exec = spec->leader && kind == RECORDER_COMMAND && options->delay_ms == 0;
	if (options->counting) {
		attr->freq = 0;
		attr->sample_period = 0;
	}
}

void attr_reads_group(struct perf_event_attr *attr)
{
	attr->sample_type |= PERF_SAMPLE_READ;
}

void attr_counted(struct perf_event_attr *attr)
{
	attr_reads_group(attr);
	attr->freq = 0;
	attr->sample_period = 0;
}

void attr_stopping(struct perf_event_attr *attr, uint64_t cookie)
{
	attr->inherit = 0;
	attr->enable_on_exec = 0;
	if (is_tracepoint(attr))
		return;
	attr->sigtrap = attr->sample_period > 0;
	attr->remove_on_exec = 1; /* the kernel insists: another program is not to get the signal */
	attr->sig_data = cookie;
}

void attr_apart(struct perf_event_attr *attr)
{
	attr->inherit = 0;
	attr->enable_on_exec = 0;
	attr->disabled = 1;
	attr->exclude_kernel = 1;
}

void attr_sideband(struct perf_event_attr *attr, enum recorder_target_kind kind)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_DUMMY;
	common(attr);
	attr->sample_period = 1;
	attr->mmap = attr->mmap2 = attr->comm = attr->comm_exec = attr->task = 1;
	attr->build_id = 1;
	attr->inherit = kind != RECORDER_CPUS;
	attr->exclude_kernel = 1; /* it counts nothing: this keeps it open to ordinary users */
	attr->watermark = 1;
	attr->wakeup_watermark = 1;
}

void attr_anchor(struct perf_event_attr *attr, size_t watermark)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_DUMMY;
	common(attr);
	attr->exclude_kernel = 1;
	attr->watermark = 1;
	attr->wakeup_watermark = (uint32_t)watermark;
}

void attr_python(struct perf_event_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_BPF_OUTPUT;
	common(attr);
	attr->sample_type |= PERF_SAMPLE_RAW;
	attr->sample_period = 1;
}
