#include "perfmap/merge.h"

/* How far into the Python frames the run that starts at `at` goes. A stack that was cut at the root
 * ends within a run. */
static size_t run_end(const struct py_raw_frame *python, size_t count, size_t at)
{
	while (at < count && !(python[at].instr & PY_FRAME_ENTRY))
		at++;
	return at < count ? at + 1 : count;
}

static void push(struct merge_item *out, size_t *len, bool python, size_t index)
{
	out[(*len)++] = (struct merge_item){.python = python, .index = (uint32_t)index};
}

size_t merge_stacks(const uint8_t *native, size_t native_count, const struct py_raw_frame *python,
		    size_t python_count, bool all, struct merge_item *out, size_t *dropped)
{
	size_t len = 0, user = 0, last_eval = 0, at = 0;
	bool through_eval = false;

	*dropped = 0;
	if (!python_count) {
		for (size_t i = 0; i < native_count; i++)
			push(out, &len, false, i);
		return len;
	}
	while (user < native_count && native[user] == MERGE_KERNEL)
		push(out, &len, false, user++);
	for (size_t i = user; i < native_count; i++) {
		if (native[i] == MERGE_EVAL) {
			last_eval = i;
			through_eval = true;
		}
	}
	for (size_t i = user; i < native_count; i++) {
		bool trusted = i == user || (through_eval && i <= last_eval);

		if (native[i] == MERGE_EVAL) {
			if (all)
				push(out, &len, false, i);
			for (size_t end = run_end(python, python_count, at); at < end; at++)
				push(out, &len, true, at);
			continue;
		}
		/* Beyond the last eval frame only a chain that found every run is believed. */
		if (!trusted && through_eval)
			trusted = at == python_count;
		if ((native[i] == MERGE_NATIVE || all) && trusted)
			push(out, &len, false, i);
		else if (native[i] != MERGE_TRAMPOLINE && native[i] != MERGE_EVALUATOR)
			++*dropped;
	}
	while (at < python_count)
		push(out, &len, true, at++);
	return len;
}
