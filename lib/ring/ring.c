#include "ring/ring.h"

#include "base/io.h"
#include "base/privilege.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* header.size has 16 bits. */
#define RECORD_MAX (1u << 16)

static int open_error(int saved_errno, size_t pages, size_t len, struct err *err)
{
	const char *path = "/proc/sys/kernel/perf_event_mlock_kb";
	char budget[32] = "unknown", limit[32] = "unlimited";
	struct privilege privilege;
	struct rlimit memlock;
	int ret;

	if (saved_errno == ENOMEM || saved_errno == EAGAIN) {
		ret = err_set(err, ERR_NOMEM, "no memory for a ring buffer of %zu pages (%zu kB)",
			      pages, len >> 10);
		err_hint(err, "use a smaller ring (-m)");
		return ret;
	}
	if (saved_errno != EPERM && saved_errno != EACCES)
		return err_sys(err, saved_errno, "cannot map a ring buffer of %zu pages", pages);
	io_read_line(path, budget, sizeof(budget), NULL);
	if (getrlimit(RLIMIT_MEMLOCK, &memlock) == 0 && memlock.rlim_cur != RLIM_INFINITY)
		snprintf(limit, sizeof(limit), "%llu kB",
			 (unsigned long long)memlock.rlim_cur >> 10);
	ret = err_set(err, ERR_PERMISSION,
		      "the kernel refuses to lock %zu kB for a ring buffer: "
		      "kernel.perf_event_mlock_kb is %s per CPU and RLIMIT_MEMLOCK is %s",
		      len >> 10, budget, limit);
	privilege_read(&privilege);
	if (privilege.place != PRIVILEGE_HOST)
		err_hint(err, "use a smaller ring (-m with fewer pages), or raise the limit: %s",
			 privilege_remedy(PRIVILEGE_NEED_MLOCK, privilege.place));
	else
		err_hint(err,
			 "use a smaller ring (-m with fewer pages), or raise the limit: sysctl "
			 "kernel.perf_event_mlock_kb=%zu, ulimit -l unlimited, or CAP_IPC_LOCK",
			 2 * len >> 10);
	return ret;
}

int ring_open(struct ring *ring, int event_fd, size_t pages, struct err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t len = (pages + 1) * page;
	void *map;

	*ring = (struct ring){0};
	if (!pages || (pages & (pages - 1)) || pages > SIZE_MAX / 2 / page)
		return err_set(err, ERR_USAGE, "a ring buffer has a power of two of pages, not %zu",
			       pages);
	ring->wrapped = malloc(RECORD_MAX);
	if (!ring->wrapped)
		return err_nomem(err);
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, event_fd, 0);
	if (map == MAP_FAILED) {
		int saved = errno;

		ring_close(ring);
		return open_error(saved, pages, len, err);
	}
	ring->control = map;
	ring->data = (const unsigned char *)map + page;
	ring->size = pages * page;
	return 0;
}

void ring_close(struct ring *ring)
{
	if (ring->control)
		munmap(ring->control,
		       (size_t)(ring->data - (const unsigned char *)ring->control) + ring->size);
	free(ring->wrapped);
	*ring = (struct ring){0};
}

void ring_begin(struct ring *ring)
{
	ring->head = __atomic_load_n(&ring->control->data_head, __ATOMIC_ACQUIRE);
	ring->tail = ring->control->data_tail;
}

/* `len` bytes at `tail`, copied where they cross the end. */
static const void *contiguous(const struct ring *ring, size_t len)
{
	size_t at = ring->tail & (ring->size - 1);
	size_t first = ring->size - at;

	if (len <= first)
		return ring->data + at;
	memcpy(ring->wrapped, ring->data + at, first);
	memcpy(ring->wrapped + first, ring->data, len - first);
	return ring->wrapped;
}

const struct perf_event_header *ring_next(struct ring *ring, int *corrupt)
{
	const struct perf_event_header *header;
	uint64_t left = ring->head - ring->tail;

	if (!left)
		return NULL;
	if (left >= sizeof(*header) && left <= ring->size && !(ring->tail & 7)) {
		header = contiguous(ring, sizeof(*header));
		/* The size is read once: what is mapped could change under a broken kernel. */
		uint16_t size = __atomic_load_n(&header->size, __ATOMIC_RELAXED);

		if (size >= sizeof(*header) && size <= left && !(size & 7)) {
			header = contiguous(ring, size);
			ring->tail += size;
			return header;
		}
	}
	/* Nothing says where the next record starts, so the batch is given up. */
	*corrupt = 1;
	ring->tail = ring->head;
	return NULL;
}

void ring_end(struct ring *ring)
{
	__atomic_store_n(&ring->control->data_tail, ring->tail, __ATOMIC_RELEASE);
}

void ring_put_back(struct ring *ring, const struct perf_event_header *record)
{
	ring->tail -= record->size;
}

size_t ring_pending(const struct ring *ring)
{
	uint64_t head = __atomic_load_n(&ring->control->data_head, __ATOMIC_ACQUIRE);
	uint64_t pending = head - ring->control->data_tail;

	return pending < ring->size ? (size_t)pending : ring->size;
}
