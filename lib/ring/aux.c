#include "ring/aux.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define SMALLEST_PAGES 2 /* of Arm's SPE */

int aux_open(struct aux_area *area, int event_fd, const struct ring *ring, size_t pages,
	     struct err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map;

	*area = (struct aux_area){.control = ring->control};
	for (;; pages /= 2) {
		area->size = pages * page;
		ring->control->aux_offset = page + ring->size;
		ring->control->aux_size = area->size;
		map = mmap(NULL, area->size, PROT_READ | PROT_WRITE, MAP_SHARED, event_fd,
			   (off_t)ring->control->aux_offset);
		if (map != MAP_FAILED)
			break;
		if ((errno != EPERM && errno != ENOMEM) || pages <= SMALLEST_PAGES)
			return err_sys(err, errno, "cannot map a trace buffer of %zu pages", pages);
	}
	area->data = map;
	return 0;
}

void aux_close(struct aux_area *area)
{
	if (area->data)
		munmap((void *)area->data, area->size);
	*area = (struct aux_area){0};
}

bool aux_begin(struct aux_area *area, struct bytes parts[2])
{
	size_t at, len, first;

	if (!area->data)
		return false;
	area->head = __atomic_load_n(&area->control->aux_head, __ATOMIC_ACQUIRE);
	area->tail = area->control->aux_tail;
	/* The kernel stops before it overwrites; should it not, the newest bytes are sound. */
	if (area->head - area->tail > area->size)
		area->tail = area->head - area->size;
	at = area->tail & (area->size - 1);
	len = (size_t)(area->head - area->tail);
	first = len < area->size - at ? len : area->size - at;
	parts[0] = bytes_of(area->data + at, first);
	parts[1] = bytes_of(area->data, len - first);
	return len > 0;
}

void aux_end(struct aux_area *area)
{
	__atomic_store_n(&area->control->aux_tail, area->head, __ATOMIC_RELEASE);
}
