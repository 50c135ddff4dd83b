#include "record/tracer_internal.h"

#include "perfmap/code.h"
#include "perfmap/walk.h"

/*
 * The thread executes nothing meanwhile, so its frames and the code objects that they hold stay
 * what they are; other threads run on.
 */

/* Sends a code object that was not seen before. What cannot be sent is asked for again. */
static void send_code(struct tracer *tracer, const struct tracee *tracee,
		      const struct memory *memory, const struct py_raw_frame *frame)
{
	struct tracer_code head = {
		.pid = tracee->pid,
		.lineage = tracee->process.lineage,
		.code = frame->code,
		.fingerprint = frame->fingerprint,
	};
	struct intern strings;
	struct py_codes *codes;
	struct strbuf section = {0}, message = {0};
	bool sent;

	intern_init(&strings);
	codes = py_codes_new(&strings);
	sent = codes &&
	       py_codes_read(codes, memory, &tracee->process.layout, head.lineage, head.code,
			     head.fingerprint, NULL) == 0 &&
	       py_codes_encode(codes, NULL, &section) == 0;
	if (sent) {
		strbuf_blob(&message, section.buf, section.len);
		sent = py_codes_encode_bytecode(codes, NULL, &message) == 0 &&
		       tracer_tell(tracer, TRACER_CODE, &head, sizeof(head), message.buf,
				   message.len);
	}
	if (!sent) {
		tracer->shared->code_unread++;
		map_remove(&tracer->seen,
			   map_mix(frame->code, (uint64_t)head.lineage << 32 | frame->fingerprint));
	}
	strbuf_fini(&section);
	strbuf_fini(&message);
	py_codes_free(codes);
	intern_fini(&strings);
}

static void send_codes(struct tracer *tracer, const struct tracee *tracee,
		       const struct memory *memory, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		const struct py_raw_frame *frame = &tracer->walked.frames[i];
		uint64_t key = map_mix(frame->code, (uint64_t)tracee->process.lineage << 32 |
							    frame->fingerprint);
		bool added = false;

		if (map_put(&tracer->seen, key, &added) && added)
			send_code(tracer, tracee, memory, frame);
	}
}

void tracer_walk(struct tracer *tracer, struct task *task, uint64_t time)
{
	struct tracer_stop stop = {.time = time, .tid = (uint32_t)task->tid};
	struct tracee *tracee = task->tracee;
	struct memory memory, plain;
	unsigned int count = 0;
	int status;

	task->stopped = time;
	if (!tracee->python || !task->pointer) {
		tracer_tell(tracer, TRACER_STOP, &stop, sizeof(stop), NULL, 0);
		return;
	}
	foresight_begin(&task->foresight, &tracee->live);
	memory = memory_of_foresight(&task->foresight);
	plain = memory_of_process(&tracee->live);
	status = py_walk(&tracee->process, &memory, task->pointer, tracer->walked.frames,
			 PY_FRAMES_MAX, &count);
	if (status == PY_WALK_FAULT)
		tracer->shared->faults++;
	send_codes(tracer, tracee, &plain, count);
	tracer->walked.head = (struct py_raw_frames){
		.magic = PY_RAW_FRAMES,
		.status = (uint16_t)status,
		.count = (uint16_t)count,
		.lineage = tracee->process.lineage,
	};
	tracer_tell(tracer, TRACER_STOP, &stop, sizeof(stop), &tracer->walked,
		    sizeof(tracer->walked.head) + count * sizeof(tracer->walked.frames[0]));
}
