#include "record/phases.h"

#include "base/strbuf.h"
#include "data/writer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SECTION_VERSION 1u

/* True, and counted, where it cannot be kept. */
static bool refuse(struct phases *phases, const char *name)
{
	size_t len = strlen(name);
	bool refused = !len || len > PHASE_NAME_MAX || phases->list.len >= PHASES_MAX ||
		       phases->open.len >= PHASES_OPEN_MAX;

	phases->refused += refused;
	return refused;
}

static int add(struct phases *phases, const struct phase *phase, struct err *err)
{
	struct phase *added = vec_push(&phases->list);

	if (!added)
		return err_nomem(err);
	*added = *phase;
	added->name = strdup(phase->name);
	if (added->name)
		return 0;
	phases->list.len--;
	return err_nomem(err);
}

int phases_begin(struct phases *phases, const char *name, uint32_t pid, uint32_t tid, uint64_t time,
		 struct err *err)
{
	struct phase phase = {
		.name = (char *)name, .begin = time, .end = PHASE_OPEN, .pid = pid, .tid = tid};
	size_t *open;

	if (refuse(phases, name))
		return 0;
	open = vec_push(&phases->open);
	if (!open)
		return err_nomem(err);
	*open = phases->list.len;
	return add(phases, &phase, err);
}

int phases_mark(struct phases *phases, const char *name, uint32_t pid, uint32_t tid, uint64_t time,
		struct err *err)
{
	struct phase phase = {
		.name = (char *)name, .begin = time, .end = time, .pid = pid, .tid = tid};

	return refuse(phases, name) ? 0 : add(phases, &phase, err);
}

void phases_end(struct phases *phases, const char *name, uint32_t pid, uint32_t tid, uint64_t time)
{
	size_t *open = phases->open.items;

	for (size_t i = phases->open.len; i-- > 0;) {
		struct phase *phase = &phases->list.items[open[i]];

		if (phase->pid != pid || phase->tid != tid || strcmp(phase->name, name) != 0)
			continue;
		phase->end = time > phase->begin ? time : phase->begin;
		phases->open.len--;
		memmove(open + i, open + i + 1, (phases->open.len - i) * sizeof(*open));
		return;
	}
	phases->refused++;
}

int phases_encode(const struct phases *phases, struct strbuf *section)
{
	strbuf_u32(section, SECTION_VERSION);
	strbuf_u32(section, (uint32_t)phases->list.len);
	for (size_t i = 0; i < phases->list.len; i++) {
		const struct phase *phase = &phases->list.items[i];

		strbuf_u64(section, phase->begin);
		strbuf_u64(section, phase->end);
		strbuf_u32(section, phase->pid);
		strbuf_u32(section, phase->tid);
		strbuf_blob(section, phase->name, strlen(phase->name));
	}
	return strbuf_failed(section) ? ERR_NOMEM : 0;
}

int phases_store(const struct phases *phases, struct data_writer *writer, struct err *err)
{
	struct strbuf section = {0};
	int ret;

	if (!phases || !phases->list.len)
		return 0;
	ret = phases_encode(phases, &section) < 0
		      ? err_nomem(err)
		      : data_writer_section(writer, DATA_SECTION_PHASE, section.buf, section.len,
					    err);
	strbuf_fini(&section);
	return ret;
}

void phases_fini(struct phases *phases)
{
	for (size_t i = 0; i < phases->list.len; i++)
		free(phases->list.items[i].name);
	vec_fini(&phases->list);
	vec_fini(&phases->open);
}
