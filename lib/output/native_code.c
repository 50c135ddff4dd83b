#include "output/native_code.h"

#include "output/names.h"
#include "symbol/disasm.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int keep(const struct disasm_line *line, void *ctx)
{
	struct native_code *code = ctx;
	struct native_row *row = vec_push(&code->rows);

	if (!row)
		return ERR_NOMEM;
	*row = (struct native_row){.addr = line->addr, .size = line->size, .text = code->text.len};
	strbuf_add(&code->text, line->text, strlen(line->text) + 1);
	return 0;
}

static int load(struct native_code *code, struct profile *profile, uint32_t function,
		struct err *err)
{
	uint64_t vaddr;
	uint8_t *bytes;
	size_t len;
	uint16_t machine;
	int rc = profile_native_code(profile, function, &vaddr, &bytes, &len, &machine, err);

	if (rc)
		return rc;
	rc = disasm(machine, vaddr, bytes, len, keep, code, err);
	free(bytes);
	if (strbuf_failed(&code->text))
		rc = err_nomem(err);
	code->instructions = code->rows.len;
	return rc;
}

static void add_counts(struct view_count *sum, const struct view_count *counts, size_t events)
{
	for (size_t e = 0; e < events; e++) {
		sum[e].self += counts[e].self;
		sum[e].total += counts[e].total;
		sum[e].self_samples += counts[e].self_samples;
		sum[e].total_samples += counts[e].total_samples;
	}
}

/* Both are in the order of their addresses. What lies in no instruction gets a row of its own. */
static int count(struct native_code *code, size_t events)
{
	size_t at = 0;

	code->sums = calloc(code->instructions * events + 1, sizeof(*code->sums));
	if (!code->sums)
		return -1;
	for (size_t i = 0; i < code->address_count; i++) {
		const struct view_address *address = &code->addresses[i];
		struct native_row *row;

		while (at < code->instructions &&
		       code->rows.items[at].addr + code->rows.items[at].size <= address->addr)
			at++;
		if (at < code->instructions && address->addr >= code->rows.items[at].addr) {
			struct view_count *sum = code->sums + at * events;

			row = &code->rows.items[at];
			if (!row->counts)
				row->frame = address->frame;
			row->counts = sum;
			add_counts(sum, address->counts, events);
			continue;
		}
		row = vec_push(&code->rows);
		if (!row)
			return -1;
		*row = (struct native_row){
			.addr = address->addr, .frame = address->frame, .counts = address->counts};
	}
	return 0;
}

int native_code_open(struct native_code *code, struct profile *profile,
		     const struct view_filter *filter, uint32_t function, struct err *err)
{
	int rc;

	*code = (struct native_code){0};
	rc = view_addresses(&code->addresses, &code->address_count, profile, filter, function, err);
	if (!rc && load(code, profile, function, &code->why) == ERR_NOMEM)
		rc = err_nomem(err);
	if (!rc && count(code, profile_event_count(profile)))
		rc = err_nomem(err);
	return rc;
}

void native_code_close(struct native_code *code)
{
	vec_fini(&code->rows);
	strbuf_fini(&code->text);
	view_addresses_free(code->addresses, code->address_count);
	free(code->sums);
}

void native_code_add_line(struct profile *profile, const struct native_row *row, struct strbuf *out)
{
	const char *file, *base;
	uint32_t line;

	if (!row->counts || !profile_native_line(profile, row->frame, &file, &line))
		return;
	base = strrchr(file, '/');
	names_add_text(out, base ? base + 1 : file);
	strbuf_printf(out, ":%" PRIu32, line);
}
