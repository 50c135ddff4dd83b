#include "record/engine.h"

#include "base/clock.h"
#include "base/log.h"
#include "record/stops.h"
#include "record/tracer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * The stop engine, pyperf's side: a tracer (tracer.h) stops threads and sends their frames through
 * shared memory, samples come through the rings; here they meet. A sample that comes before its
 * frames waits in its ring. When that takes long, the thread may be waiting in the kernel: then the
 * tracer is asked to look at it. What is not told for all that is written without frames.
 */

#define NEWS_BYTES (8u << 20)
#define LOOK_NS 2000000u       /* after that long it is asked for */
#define PATIENCE_NS 500000000u /* after that long it is given up */
#define LEAVE_MS 1000
#define DELAY_MOST_NS 1000000u /* more is no delay: the sample was taken in the kernel */

struct engine {
	struct mailbox news;
	struct tracer_shared *shared;
	struct stops stops;
	struct map events; /* id -> index + 1 */
	struct map cannot; /* tid: is not stopped at samples, so far */
	struct map asked;  /* tid -> time of the sample that it was asked for */
	size_t mark;	   /* stops that were there when the round began */
	uint64_t not_stopped;
	pid_t tracer;
	int socket;
	bool gone; /* nothing more comes */
};

static int stop_open(struct engine **out, const struct recorder_target *target, struct err *err)
{
	struct engine *engine;
	int ret = 0;

	if (target->kind == RECORDER_CPUS) {
		err_set(err, ERR_UNSUPPORTED, "whole CPUs cannot be recorded by stopping threads");
		err_hint(err, "name processes (-p) or a command, or use --python=bpf");
		return ERR_UNSUPPORTED;
	}
	if (target->kind == RECORDER_COMMAND)
		ret = tracer_probe(0, err);
	for (size_t i = 0; !ret && i < target->tasks.len; i++)
		ret = tracer_probe(target->tasks.items[i].tid, err);
	if (ret)
		return ret;
	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return err_nomem(err);
	engine->socket = -1;
	*out = engine;
	return 0;
}

static void stop_close(struct engine *engine)
{
	if (!engine)
		return;
	if (engine->socket >= 0)
		close(engine->socket);
	if (engine->tracer > 0)
		waitpid(engine->tracer, NULL, WNOHANG);
	stops_fini(&engine->stops);
	map_fini(&engine->events);
	map_fini(&engine->cannot);
	map_fini(&engine->asked);
	if (engine->shared)
		munmap(engine->shared, sizeof(*engine->shared));
	mailbox_close(&engine->news);
	free(engine);
}

static void order(struct engine *engine, const struct tracer_order *order)
{
	ssize_t sent;

	if (engine->socket < 0 || engine->gone)
		return;
	do
		sent = send(engine->socket, order, sizeof(*order), MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		engine->gone = true;
}

static int share(struct engine *engine, struct err *err)
{
	void *map = mmap(NULL, sizeof(*engine->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return err_sys(err, errno, "cannot share memory between processes");
	engine->shared = map;
	engine->shared->rate = TRACER_RATE_ONE;
	return mailbox_open(&engine->news, NEWS_BYTES, err);
}

static int read_answer(struct engine *engine, struct err *err)
{
	struct tracer_answer answer;
	ssize_t len;

	do
		len = recv(engine->socket, &answer, sizeof(answer), 0);
	while (len < 0 && errno == EINTR);
	if (len != sizeof(answer))
		return err_set(err, ERR_FAILED, "the process that stops threads has ended");
	if (answer.code && err)
		*err = answer.err;
	return answer.code;
}

static int stop_start(struct engine *engine, const struct channels *channels, struct err *err)
{
	const struct recorder_options *options = channels->options;
	struct tracer_setup setup = {
		.channels = channels,
		.enabled = channels->target->kind == RECORDER_COMMAND && !options->delay_ms,
	};
	int pair[2], ret = share(engine, err);

	if (ret)
		return ret;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "cannot start a process");
	setup.news = &engine->news;
	setup.shared = engine->shared;
	setup.socket = pair[1];
	engine->tracer = fork();
	if (engine->tracer == 0) {
		close(pair[0]);
		tracer_run(&setup);
	}
	close(pair[1]);
	engine->socket = pair[0];
	if (engine->tracer < 0)
		return err_sys(err, errno, "cannot start a process");
	return read_answer(engine, err);
}

static void stop_enable(struct engine *engine, bool on)
{
	const struct tracer_order switched = {.kind = on ? TRACER_ENABLE : TRACER_DISABLE};

	order(engine, &switched);
}

static int stop_add_process(struct engine *engine, pid_t pid, const struct py_process *process,
			    struct err *err)
{
	const struct tracer_order added = {
		.kind = TRACER_ADD_PROCESS,
		.pid = pid,
		.process = *process,
	};

	order(engine, &added);
	return 0;
}

static void stop_drop_process(struct engine *engine, pid_t pid)
{
	const struct tracer_order dropped = {.kind = TRACER_DROP_PROCESS, .pid = pid};

	order(engine, &dropped);
}

static int stop_request_fd(const struct engine *engine)
{
	return engine->socket;
}

static void add_event(struct engine *engine, struct bytes body)
{
	const struct tracer_event *event = bytes_take(&body, sizeof(*event));
	uint64_t *index = event ? map_put(&engine->events, event->id, NULL) : NULL;

	if (index)
		*index = event->event + 1;
}

/* A payload of nothing but one byte stands for frames that were missed. */
static void add_stop(struct engine *engine, uint32_t kind, struct bytes body)
{
	const struct tracer_stop *stop = bytes_take(&body, sizeof(*stop));

	if (!stop)
		return;
	if (kind == TRACER_CANNOT)
		map_put(&engine->cannot, stop->tid, NULL);
	else
		map_remove(&engine->cannot, stop->tid);
	if (kind != TRACER_STOP)
		body = bytes_of("", 1);
	if (!stops_add(&engine->stops, stop->tid, stop->time, body))
		engine->not_stopped++;
}

static void add_code(const struct engine_codes *codes, struct bytes body)
{
	const struct tracer_code *code = bytes_take(&body, sizeof(*code));

	if (code)
		codes->take(codes->ctx, code->pid, code->lineage, code->code, code->fingerprint,
			    body);
}

static void read_knocks(struct engine *engine)
{
	char byte;
	ssize_t len = 0;

	while (!engine->gone && (len = recv(engine->socket, &byte, 1, MSG_DONTWAIT)) > 0)
		engine->shared->knocked = false;
	if (!engine->gone && len == 0) {
		engine->gone = true;
		log_warn("the process that stops threads was killed: no samples from here on");
	}
}

static void stop_requests(struct engine *engine, const struct engine_codes *codes)
{
	struct bytes body;
	uint32_t kind;

	read_knocks(engine);
	while (mailbox_next(&engine->news, &kind, &body)) {
		if (kind == TRACER_EVENT)
			add_event(engine, body);
		else if (kind == TRACER_CODE)
			add_code(codes, body);
		else
			add_stop(engine, kind, body);
	}
}

static int stop_event(const struct engine *engine, uint64_t id)
{
	const uint64_t *index = map_get(&engine->events, id);

	return index ? (int)*index - 1 : -1;
}

/* The tracer knows from it what a stop costs beside what it sees itself. */
static void note_delay(struct engine *engine, uint64_t delay)
{
	uint64_t mean = engine->shared->delay_ns;

	if (delay < DELAY_MOST_NS)
		engine->shared->delay_ns = mean ? mean - mean / 16 + delay / 16 : delay;
}

static enum engine_frames give_up(struct engine *engine)
{
	engine->not_stopped++;
	return ENGINE_AS_IT_IS;
}

static enum engine_frames wait_for(struct engine *engine, uint32_t tid, uint64_t time, bool urgent)
{
	uint64_t now = clock_now_ns(), *asked;

	if (engine->gone || urgent || map_get(&engine->cannot, tid) || now - time > PATIENCE_NS)
		return give_up(engine);
	if (now - time < LOOK_NS)
		return ENGINE_WAIT;
	asked = map_put(&engine->asked, tid, NULL);
	if (asked && *asked != time) {
		const struct tracer_order look = {
			.kind = TRACER_LOOK,
			.pid = (pid_t)tid,
			.time = time,
		};

		*asked = time;
		order(engine, &look);
	}
	return ENGINE_WAIT;
}

static enum engine_frames stop_frames(struct engine *engine, uint32_t tid, uint64_t time,
				      bool urgent, struct bytes *frames)
{
	const struct stop_of_thread *stop = stops_find(&engine->stops, tid, time);

	if (!stop)
		return wait_for(engine, tid, time, urgent);
	*frames = stops_payload(&engine->stops, stop);
	if (bytes_left(frames) == 1)
		return give_up(engine);
	note_delay(engine, stop->time - time);
	return bytes_left(frames) ? ENGINE_FRAMES : ENGINE_AS_IT_IS;
}

/* Stops from before the round that ends here have met their samples. */
static void stop_round(struct engine *engine)
{
	stops_forget(&engine->stops, engine->mark);
	engine->mark = engine->stops.all.len;
}

/* A target that cannot be left at once (it waits in the kernel) is left by the tracer alone. */
static void stop_finish(struct engine *engine)
{
	const struct tracer_order leave = {.kind = TRACER_LEAVE};
	struct pollfd fd = {.fd = engine->socket, .events = POLLIN};
	char byte = 0;

	if (engine->gone || engine->socket < 0)
		return;
	order(engine, &leave);
	while (byte != 'l' && poll(&fd, 1, LEAVE_MS) > 0 &&
	       recv(engine->socket, &byte, 1, MSG_DONTWAIT) > 0)
		;
	engine->gone = true;
}

static void stop_stats(const struct engine *engine, struct engine_stats *stats)
{
	const struct tracer_shared *shared = engine->shared;

	*stats = (struct engine_stats){.not_stopped = engine->not_stopped};
	if (!shared)
		return;
	stats->faults = shared->faults;
	stats->code_unread = shared->code_unread;
	stats->not_sampled = shared->not_sampled;
	if (shared->rate_sum)
		stats->rate_cut = (double)TRACER_RATE_ONE * (double)shared->rate_count /
				  (double)shared->rate_sum;
}

const struct engine_ops engine_stop = {
	.python = RECORDER_PYTHON_STOP,
	.name = "stop",
	.walks = true,
	.open = stop_open,
	.close = stop_close,
	.start = stop_start,
	.enable = stop_enable,
	.finish = stop_finish,
	.add_process = stop_add_process,
	.drop_process = stop_drop_process,
	.request_fd = stop_request_fd,
	.requests = stop_requests,
	.event = stop_event,
	.frames = stop_frames,
	.round = stop_round,
	.stats = stop_stats,
};
