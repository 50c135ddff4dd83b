#include "record/engine.h"

#include "base/log.h"
#include "base/strbuf.h"

/* Best first; `auto` takes the first that opens. */
static const struct engine_ops *const engines[] = {
	&engine_bpf,
	&engine_stop,
	&engine_trampoline,
	&engine_off,
};

#define ENGINES (sizeof(engines) / sizeof(engines[0]))

static const struct engine_ops *find_engine(enum recorder_python python)
{
	for (size_t i = 0; i < ENGINES; i++)
		if (engines[i]->python == python)
			return engines[i];
	return NULL;
}

const char *engine_name(enum recorder_python python)
{
	const struct engine_ops *ops = find_engine(python);

	return ops ? ops->name : "auto";
}

bool engine_has_lines(enum recorder_python python)
{
	const struct engine_ops *ops = find_engine(python);

	return ops && ops->walks;
}

int engine_choose(enum recorder_python *python,
		  void (*refused)(const char *engine, const struct err *why, void *ctx), void *ctx,
		  struct err *err)
{
	static const struct recorder_target command = {.kind = RECORDER_COMMAND};

	for (size_t i = 0; i < ENGINES; i++) {
		struct engine *engine = NULL;
		struct err why = {0};
		int ret = engines[i]->open(&engine, &command, &why);

		*python = engines[i]->python;
		if (!ret && engine)
			engines[i]->close(engine);
		if (!ret)
			return 0;
		if (ret == ERR_NOMEM)
			return err_nomem(err);
		refused(engines[i]->name, &why, ctx);
	}
	return err_set(err, ERR_FAILED, "no engine for Python frames");
}

/* One line says what was taken in place of what, and why. */
static void say_fallback(const struct engine_ops *taken, const struct strbuf *refused)
{
	if (!refused->len)
		return;
	log_info("Python frames by --python=%s: %s", taken->name, strbuf_text(refused));
}

int engine_open(struct engine **engine, const struct engine_ops **taken,
		enum recorder_python *python, const struct recorder_target *target, struct err *err)
{
	struct strbuf refused = {0};
	int ret = ERR_FAILED;

	for (size_t i = 0; ret && i < ENGINES; i++) {
		const struct engine_ops *ops = engines[i];
		struct err why = {0};

		if (*python != RECORDER_PYTHON_AUTO && ops->python != *python)
			continue;
		ret = ops->open(engine, target, &why);
		if (ret && *python != RECORDER_PYTHON_AUTO) {
			if (err)
				*err = why;
			break;
		}
		if (ret) {
			strbuf_printf(&refused, "%s%s%s%s", refused.len ? "; " : "", why.text,
				      why.hint[0] ? "; " : "", why.hint);
			continue;
		}
		*taken = ops;
		*python = ops->python;
		say_fallback(ops, &refused);
	}
	strbuf_fini(&refused);
	return ret;
}
