#include "output/details.h"

#include "base/partition.h"
#include "perfmap/code.h"

#include <inttypes.h>
#include <stdio.h>

#define OPCODE_WIDTH 24

int details_open(struct details *details, const struct profile *profile,
		 const struct view_filter *filter, uint32_t function, uint32_t event,
		 unsigned int wanted, struct err *err)
{
	int rc = 0;

	*details = (struct details){.function = function};
	if (wanted & DETAIL_BYTECODE)
		rc = view_bytecode(&details->bytecode, profile, filter, function, err);
	if (!rc && wanted & DETAIL_CALLERS)
		rc = view_callers(&details->callers, &details->caller_count, profile, filter,
				  function, event, err);
	if (!rc && wanted & DETAIL_CALLEES)
		rc = view_callees(&details->callees, &details->callee_count, profile, filter,
				  function, event, err);
	return rc;
}

void details_close(struct details *details)
{
	view_bytecode_free(details->bytecode);
	view_calls_free(details->callers);
	view_calls_free(details->callees);
}

const struct view_call *details_line(const struct view_call *rows, size_t count, uint32_t line,
				     size_t *found)
{
	size_t at = partition_point(rows, count, row, row->line < line), end;

	for (end = at; end < count && rows[end].line == line;)
		end++;
	*found = end - at;
	return rows + at;
}

void details_add_call(const struct profile *profile, const struct names *names,
		      const struct view_call *call, struct strbuf *out)
{
	if (call->function == UINT32_MAX) {
		strbuf_str(out, "no Python code");
		return;
	}
	names_add_function(names, call->function, out);
	if (!call->other_line) {
		size_t before = out->len;

		strbuf_str(out, "  ");
		names_add_place(names, call->function, out);
		if (out->len == before + 2)
			out->len = before;
		return;
	}
	strbuf_str(out, "  ");
	names_add_file(names, profile_function(profile, call->function)->file, out);
	strbuf_printf(out, ":%" PRIu32, call->other_line);
}

void details_add_instruction(const struct profile *profile, const struct view_bytecode *bytecode,
			     const struct view_instruction *row, struct strbuf *out)
{
	struct strbuf argument = {0};
	char number[16];
	const char *opcode = row->as.name;

	if (bytecode->variant_count > 1)
		strbuf_printf(out, "3.%u ", bytecode->variants[row->variant]->minor);
	view_instruction_argument(profile, bytecode, row, &argument);
	if (!opcode) {
		snprintf(number, sizeof(number), "opcode %u", row->as.opcode);
		opcode = number;
	}
	strbuf_printf(out, "%5" PRIu32 "  %-*s", row->as.offset, argument.len ? OPCODE_WIDTH : 0,
		      opcode);
	if (argument.len) {
		strbuf_char(out, ' ');
		names_add_text(out, strbuf_text(&argument));
	}
	strbuf_fini(&argument);
}
