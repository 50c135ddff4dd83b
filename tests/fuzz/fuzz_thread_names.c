#include "perfmap/thread_names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The process's memory is the input, again and again: every pointer leads somewhere. */
struct input {
	const uint8_t *data;
	size_t len;
};

static int read_input(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct input *input = ctx;

	/* The heap of no process is this large. */
	if (len > 1 << 20)
		return -1;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = input->data[(addr + i) % input->len];
	return 0;
}

static void take(__u64 ident, const char *name, void *ctx)
{
	size_t *sum = ctx;

	*sum += ident + strlen(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct py_process process = {0};
	struct py_version version = {.major = 3, .micro = -1};
	struct input input = {data + 1, len - 1};
	struct memory memory = {read_input, &input};
	size_t sum = 0;

	if (len < 9)
		return 0;
	version.minor = 6 + data[0] % 7;
	if (py_layout_find(&version, NULL, 0, &process.layout, NULL) == 0)
		py_thread_names(&process, &memory, 8, take, &sum);
	return 0;
}
