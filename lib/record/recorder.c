#include "record/recorder_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/privilege.h"
#include "base/strbuf.h"
#include "record/attach.h"
#include "record/channel.h"
#include "record/existing.h"
#include "record/frame_record.h"
#include "record/hits.h"
#include "record/kernel.h"
#include "record/meta.h"
#include "record/native.h"
#include "record/phases.h"
#include "record/pythons.h"
#include "record/sums.h"
#include "record/target.h"
#include "record/traces.h"
#include "symbol/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * One epoll set holds the side-band rings (which wake at each record), the sample rings (which wake
 * a quarter full), the walker's requests and the caller's fd. Side-band is always read first, so
 * that a process is known before its requests are answered.
 */

#define PRIORITY 10 /* steps of nice */
#define WAIT_MS RECORDER_STEP_MS
#define HELD_MS 5     /* while a sample waits for its frames */
#define STARTING_MS 5 /* while an interpreter starts */

enum source_kind {
	SOURCE_WAKE,
	SOURCE_REQUESTS,
	SOURCE_SIDEBAND,
	SOURCE_SAMPLES,
};

int recorder_new(struct recorder **result, const struct recorder_options *options,
		 const struct recorder_target *target, struct err *err)
{
	struct recorder *recorder = calloc(1, sizeof(*recorder));
	struct privilege privilege;
	bool named;
	int ret;

	if (!recorder)
		return err_nomem(err);
	privilege_read(&privilege);
	recorder->options = options;
	recorder->engine = options->python;
	recorder->epoll_fd = -1;
	recorder->pid_namespace = privilege.pid_namespace != 0;
	if (recorder->pid_namespace && target->kind == RECORDER_CPUS)
		log_info("processes outside of this pid namespace are told by their time alone: %s",
			 privilege_remedy(PRIVILEGE_NEED_TARGET, privilege.place));
	recorder->roots = roots_new();
	/* Files are kept open for the names in the file, and for their unwind tables. */
	named = !options->listener || options->chain == RECORDER_CHAIN_DWARF;
	recorder->hits = recorder->roots && named ? hits_new(recorder->roots) : NULL;
	if (recorder->hits || (recorder->roots && !named))
		ret = pythons_new(&recorder->pythons, &recorder->engine, target, recorder->roots,
				  err);
	else
		ret = err_nomem(err);
	if (ret) {
		recorder_free(recorder);
		return ret;
	}
	*result = recorder;
	return 0;
}

const char *recorder_environment(const struct recorder *recorder)
{
	return recorder->engine == RECORDER_PYTHON_TRAMPOLINE ? "PYTHONPERFSUPPORT=1" : NULL;
}

/* Only events that are inherited need a kernel that can. */
bool recorder_reads_groups(const struct recorder *recorder, const struct recorder_target *target)
{
	return target->kind == RECORDER_CPUS || recorder->options->no_inherit ||
	       pythons_open_events(recorder->pythons) || event_reads_inherited();
}

static int watch(struct recorder *recorder, int fd, enum source_kind kind, size_t channel,
		 struct err *err)
{
	struct epoll_event event = {
		.events = EPOLLIN,
		.data.u64 = (uint64_t)channel << 8 | kind,
	};

	if (fd >= 0 && epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return err_sys(err, errno, "cannot watch the ring buffers");
	return 0;
}

static int watch_all(struct recorder *recorder, struct err *err)
{
	int ret;

	recorder->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (recorder->epoll_fd < 0)
		return err_sys(err, errno, "cannot watch the ring buffers");
	ret = watch(recorder, pythons_request_fd(recorder->pythons), SOURCE_REQUESTS, 0, err);
	for (size_t i = 0; !ret && i < recorder->channels.len; i++) {
		const struct channel *channel = &recorder->channels.items[i];

		if (!vec_push(&recorder->frames_before) || !vec_push(&recorder->pending))
			return err_nomem(err);
		ret = watch(recorder, channel->sideband_fd, SOURCE_SIDEBAND, i, err);
		if (!ret)
			ret = watch(recorder, channel->samples_fd, SOURCE_SAMPLES, i, err);
	}
	return ret;
}

/* So that the end of a target is seen at once. Without pidfds (before Linux 5.3) it is seen when
 * the recorder next looks. */
static void watch_ends(struct recorder *recorder)
{
	const struct recorder_target *target = recorder->target;

	for (size_t i = 0; target->kind == RECORDER_PROCESSES && i < target->tasks.len; i++) {
		struct epoll_event event = {
			.events = EPOLLIN | EPOLLONESHOT,
			.data.u64 = SOURCE_WAKE,
		};
		int *fd = vec_push(&recorder->ends);

		if (!fd)
			return;
		*fd = (int)syscall(SYS_pidfd_open, target->tasks.items[i].pid, 0);
		if (*fd >= 0)
			epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, *fd, &event);
	}
}

static int open_outlet(struct recorder *recorder, struct err *err)
{
	if (!recorder->options->listener)
		return recorder_file_open(recorder, err);
	recorder->out = outlet_to_listener(recorder->options->listener);
	return 0;
}

static bool samples_kernel(const struct event_list *events)
{
	for (size_t i = 0; i < events->len; i++)
		if (!events->items[i].attr.exclude_kernel)
			return true;
	return false;
}

int recorder_tell_state(struct recorder *recorder, struct err *err)
{
	const struct data_event *sideband = &recorder->channels.events[recorder->channels.sampled];
	struct synth synth = {
		.out = &recorder->out,
		.id = sideband->ids[0],
		.native = recorder->native,
	};
	struct traces_clock clock;
	int ret;

	if (recorder->options->counting)
		return 0;
	ret = kernel_store_maps(&synth, samples_kernel(recorder->options->events), err);
	if (!ret && recorder->channels.traced)
		ret = traces_tell(&recorder->out, recorder->channels.traced->attr.type,
				  traces_clock_now(&clock) ? &clock : NULL, err);
	if (!ret && recorder->pid_namespace && recorder->target->kind == RECORDER_CPUS)
		ret = synth_comm(&synth, 0, 0, "[other pid namespaces]", err);
	/* What a held child has now, its exec drops. */
	if (!ret && recorder->target->kind != RECORDER_COMMAND)
		ret = existing_store(&synth, recorder->target, recorder->roots, recorder->pythons,
				     recorder->hits, err);
	return ret;
}

static int note_target(struct recorder *recorder, const struct recorder_target *target,
		       struct err *err)
{
	char *words = recorder->result.target;
	struct strbuf text = {0};

	recorder->target = target;
	recorder->sums.of_tasks = target->kind != RECORDER_CPUS;
	if (target->kind == RECORDER_COMMAND)
		return 0;
	target_describe(target, &text);
	if (strbuf_failed(&text)) {
		strbuf_fini(&text);
		return err_nomem(err);
	}
	snprintf(words, sizeof(recorder->result.target), "%.*s",
		 (int)sizeof(recorder->result.target) - 1, strbuf_text(&text));
	strbuf_fini(&text);
	return 0;
}

int recorder_open(struct recorder *recorder, const struct recorder_target *target, struct err *err)
{
	int ret = note_target(recorder, target, err);

	if (!ret && recorder->options->chain == RECORDER_CHAIN_DWARF)
		ret = native_new(&recorder->native, recorder->hits, recorder->pythons,
				 recorder->options->stack_bytes, err);
	if (!ret)
		ret = channels_open(&recorder->channels, recorder->options, target,
				    recorder->pythons, recorder->native, err);
	if (!ret)
		ret = attach_open(&recorder->attach, &recorder->channels, target, err);
	if (!ret)
		ret = pythons_start(recorder->pythons, &recorder->channels, err);
	if (!ret)
		ret = watch_all(recorder, err);
	if (!ret)
		ret = open_outlet(recorder, err);
	if (!ret)
		ret = recorder_tell_state(recorder, err);
	if (!ret)
		watch_ends(recorder);
	if (!ret)
		meta_machine(&recorder->facts, recorder->options->argv);
	if (!ret)
		ret = event_tracing_data(recorder->options->events, &recorder->tracing, err);
	recorder->facts.info.tracing_data = recorder->tracing.buf;
	recorder->facts.info.tracing_data_len = recorder->tracing.len;
	recorder->started_ns = clock_now_ns();
	return ret;
}

/* A command's exec starts its events; -D and running targets are started here. */
static int start_counting(struct recorder *recorder, struct err *err)
{
	int delay_ms = recorder->options->delay_ms;

	recorder->enable_ns = delay_ms > 0 ? clock_now_ns() + (uint64_t)delay_ms * 1000000 : 0;
	if (delay_ms || recorder->target->kind == RECORDER_COMMAND)
		return 0;
	return channels_enable(&recorder->channels, true, err);
}

int recorder_enable(struct recorder *recorder, bool on, struct err *err)
{
	recorder->enable_ns = 0;
	return channels_enable(&recorder->channels, on, err);
}

int recorder_drain(struct recorder *recorder, struct err *err)
{
	return recorder_read_round(recorder, err);
}

void recorder_use_codes(struct recorder *recorder, struct py_codes *codes)
{
	pythons_use_codes(recorder->pythons, codes);
}

const struct data_event *recorder_event(const struct recorder *recorder, size_t event)
{
	return event < recorder->channels.event_count ? &recorder->channels.events[event] : NULL;
}

int recorder_event_of(const struct recorder *recorder, uint64_t id)
{
	bool late;

	return channels_event(&recorder->channels, id, &late);
}

void recorder_each_python(const struct recorder *recorder,
			  bool (*each)(pid_t pid, const struct py_process *process, void *ctx),
			  void *ctx)
{
	pythons_each_process(recorder->pythons, each, ctx);
}

const struct recorder_result *recorder_so_far(const struct recorder *recorder)
{
	return &recorder->result;
}

enum recorder_python recorder_engine(const struct recorder *recorder)
{
	return recorder->engine;
}

/* -D: counting starts when the delay is over. */
static int enable_when_due(struct recorder *recorder, struct err *err)
{
	if (!recorder->enable_ns || clock_now_ns() < recorder->enable_ns)
		return 0;
	return recorder_enable(recorder, true, err);
}

static int wait_ms(const struct recorder *recorder)
{
	int most = recorder->held ? HELD_MS : WAIT_MS;
	uint64_t now = clock_now_ns();

	if (recorder->starting)
		return STARTING_MS;
	if (!recorder->enable_ns)
		return most;
	if (recorder->enable_ns <= now)
		return 0;
	now = (recorder->enable_ns - now) / 1000000 + 1;
	return now < (uint64_t)most ? (int)now : most;
}

bool recorder_ended(const struct recorder *recorder)
{
	return recorder->target->kind != RECORDER_COMMAND && target_ended(recorder->target);
}

/* What is not read in time is lost, so the reader goes before what it reads of, where it may. Its
 * children, which were forked before, do not. */
static void go_first(void)
{
	if (setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) - PRIORITY) < 0)
		log_debug("recording at the usual priority: raising it needs CAP_SYS_NICE");
}

int recorder_start(struct recorder *recorder, struct err *err)
{
	if (recorder->native)
		go_first();
	return start_counting(recorder, err);
}

int recorder_fd(const struct recorder *recorder)
{
	return recorder->epoll_fd;
}

/* Waits, and does what is due. *woken: the caller is to be asked. */
static int step(struct recorder *recorder, int timeout_ms, bool *woken, struct err *err)
{
	struct epoll_event events[64];
	int n = epoll_wait(recorder->epoll_fd, events, 64, timeout_ms), ret;
	bool due = clock_now_ns() - recorder->round_ns >= WAIT_MS * 1000000ull;
	bool full = due || recorder->held || (n == 0 && timeout_ms);

	if (n < 0 && errno != EINTR)
		return err_sys(err, errno, "cannot wait for the ring buffers");
	*woken = n == 0;
	for (int i = 0; i < n; i++) {
		enum source_kind kind = events[i].data.u64 & 0xff;

		*woken |= kind == SOURCE_WAKE;
		full |= kind == SOURCE_SAMPLES ||
			(kind == SOURCE_REQUESTS && pythons_open_events(recorder->pythons));
	}
	ret = enable_when_due(recorder, err);
	if (ret)
		return ret;
	return full ? recorder_read_round(recorder, err) : recorder_read_sideband(recorder, err);
}

int recorder_step(struct recorder *recorder, struct err *err)
{
	bool woken;

	return step(recorder, 0, &woken, err);
}

int recorder_run(struct recorder *recorder, int wake_fd, bool (*on_wake)(void *ctx), void *ctx,
		 struct err *err)
{
	int ret = watch(recorder, wake_fd, SOURCE_WAKE, 0, err);
	uint64_t asked_ns = clock_now_ns(), now;
	bool woken;

	if (!ret)
		ret = recorder_start(recorder, err);
	while (!ret) {
		ret = step(recorder, wait_ms(recorder), &woken, err);
		now = clock_now_ns();
		/* Rings may leave no quiet moment. */
		if (ret || (!woken && now - asked_ns < WAIT_MS * 1000000ull))
			continue;
		asked_ns = now;
		if (on_wake(ctx) || recorder_ended(recorder))
			break;
	}
	return ret;
}

int recorder_close(struct recorder *recorder, int exit_status, struct recorder_result *result,
		   struct err *err)
{
	struct pythons_stats stats;
	int ret;

	channels_enable(&recorder->channels, false, NULL);
	recorder->result.duration_ns = clock_now_ns() - recorder->started_ns;
	pythons_finish(recorder->pythons);
	ret = recorder_read_round(recorder, err);
	recorder->result.reads_dropped = recorder->sums.dropped;
	if (recorder->writer)
		ret = recorder_file_close(recorder, exit_status, ret, err);
	pythons_stats(recorder->pythons, &stats);
	if (recorder->native)
		native_counts(recorder->native, &recorder->result.stacks,
			      &recorder->result.whole_stacks);
	recorder->result.pythons = stats.found;
	recorder->result.unknown_pythons = stats.unknown;
	recorder->result.not_stopped = stats.engine.not_stopped;
	recorder->result.not_sampled = stats.engine.not_sampled;
	recorder->result.rate_cut = stats.engine.rate_cut;
	*result = recorder->result;
	return ret;
}

void recorder_free(struct recorder *recorder)
{
	if (!recorder)
		return;
	recorder_file_abandon(recorder);
	channels_close(&recorder->channels);
	pythons_free(recorder->pythons);
	hits_free(recorder->hits);
	roots_free(recorder->roots);
	native_free(recorder->native);
	attach_fini(&recorder->attach);
	sums_fini(&recorder->sums);
	strbuf_fini(&recorder->renamed);
	strbuf_fini(&recorder->frames);
	for (size_t i = 0; i < recorder->frames_before.len; i++)
		strbuf_fini(&recorder->frames_before.items[i].payload);
	vec_fini(&recorder->frames_before);
	vec_fini(&recorder->pending);
	strbuf_fini(&recorder->tracing);
	for (size_t i = 0; i < recorder->ends.len; i++)
		if (recorder->ends.items[i] >= 0)
			close(recorder->ends.items[i]);
	vec_fini(&recorder->ends);
	if (recorder->epoll_fd >= 0)
		close(recorder->epoll_fd);
	free(recorder);
}
