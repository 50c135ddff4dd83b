#ifndef PYPERF_MEMORY_H
#define PYPERF_MEMORY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reading the memory of a process, or of what stands in for one. The interpreter walker, the code
 * object reader and the unwinders see memory only through this.
 */
struct memory {
	/* 0, or -1 where any byte cannot be read; the buffer is then unspecified. */
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
	void *ctx;
};

static inline int memory_read(const struct memory *memory, uint64_t addr, void *buf, size_t len)
{
	return memory->read(memory->ctx, addr, buf, len);
}

/* A live process by process_vm_readv(2), and /proc/PID/mem where that is refused. */
struct memory_process {
	pid_t pid;
	int mem_fd; /* -1 until needed */
};
void memory_process_init(struct memory_process *process, pid_t pid);
void memory_process_fini(struct memory_process *process);
struct memory memory_of_process(struct memory_process *process);

/* A saved image: segments of (address, length, bytes), for tests and for core files. */
struct memory_image;
struct memory_image *memory_image_new(void);
void memory_image_free(struct memory_image *image);
int memory_image_add(struct memory_image *image, uint64_t addr, const void *bytes, size_t len,
		     struct err *err);
struct memory memory_of_image(struct memory_image *image);

#endif
