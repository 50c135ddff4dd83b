#include "output/trace_read.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int keep_some(const struct trace_event *event, void *ctx, struct err *err)
{
	return event->phase != 'X' || event->duration > 1000;
}

static int add_nothing(enum trace_container container, bool comma, void *ctx, struct err *err)
{
	return 0;
}

static void take_base(bool usable, int64_t base, void *ctx)
{
}

/* Any bytes as a trace to be copied: what is copied must be a trace again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace_visitor visitor = {.event = keep_some, .end = add_nothing, .base = take_base};
	int fd = memfd_create("fuzz", MFD_CLOEXEC), copy = memfd_create("fuzz", MFD_CLOEXEC);
	char path[64];
	int rc;

	if (fd < 0 || copy < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
	visitor.out = fopen(path, "w");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = trace_read(path, &visitor, NULL);
	fclose(visitor.out);
	visitor.out = NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
	if (rc == 0 && trace_read(path, &visitor, NULL))
		abort();
	close(fd);
	close(copy);
	return 0;
}
