#include "process/memory.h"

#include "base/partition.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

void memory_process_init(struct memory_process *process, pid_t pid)
{
	*process = (struct memory_process){.pid = pid, .mem_fd = -1};
}

void memory_process_fini(struct memory_process *process)
{
	if (process->mem_fd >= 0)
		close(process->mem_fd);
	process->mem_fd = -1;
}

static int read_mem_file(struct memory_process *process, uint64_t addr, void *buf, size_t len)
{
	size_t done = 0;

	if (process->mem_fd < 0) {
		char path[32];

		snprintf(path, sizeof(path), "/proc/%d/mem", (int)process->pid);
		process->mem_fd = open(path, O_RDONLY | O_CLOEXEC);
		if (process->mem_fd < 0)
			return -1;
	}
	while (done < len) {
		ssize_t n = pread(process->mem_fd, (char *)buf + done, len - done,
				  (off_t)(addr + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	return 0;
}

static int read_process(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct memory_process *process = ctx;
	struct iovec local = {.iov_base = buf, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
	ssize_t n;

	if (len == 0)
		return 0;
	if (addr + len < addr)
		return -1;
	if (process->mem_fd >= 0)
		return read_mem_file(process, addr, buf, len);
	n = process_vm_readv(process->pid, &local, 1, &remote, 1, 0);
	if (n >= 0)
		return (size_t)n == len ? 0 : -1;
	/* Seccomp profiles of containers refuse the call (EPERM) or hide it (ENOSYS) where the
	 * file is still allowed. */
	if (errno == EPERM || errno == ENOSYS)
		return read_mem_file(process, addr, buf, len);
	return -1;
}

struct memory memory_of_process(struct memory_process *process)
{
	return (struct memory){.read = read_process, .ctx = process};
}

struct segment {
	uint64_t start, len;
	unsigned char *bytes;
};

struct memory_image {
	struct {
		VEC_OF(struct segment)
	} segments; /* by start; they never overlap */
};

struct memory_image *memory_image_new(void)
{
	return calloc(1, sizeof(struct memory_image));
}

void memory_image_free(struct memory_image *image)
{
	if (!image)
		return;
	for (size_t i = 0; i < image->segments.len; i++)
		free(image->segments.items[i].bytes);
	vec_fini(&image->segments);
	free(image);
}

/* The number of segments that start at or below the address. */
static size_t segments_up_to(const struct memory_image *image, uint64_t addr)
{
	return partition_point(image->segments.items, image->segments.len, segment,
			       segment->start <= addr);
}

int memory_image_add(struct memory_image *image, uint64_t addr, const void *bytes, size_t len,
		     struct err *err)
{
	size_t at = segments_up_to(image, addr);
	const struct segment *before = at ? &image->segments.items[at - 1] : NULL;
	const struct segment *after = at < image->segments.len ? &image->segments.items[at] : NULL;
	unsigned char *copy;

	if (len == 0)
		return 0;
	if (len - 1 > UINT64_MAX - addr)
		return err_set(err, ERR_CORRUPT, "memory segment 0x%llx wraps around",
			       (unsigned long long)addr);
	if ((before && addr - before->start < before->len) || (after && after->start - addr < len))
		return err_set(err, ERR_CORRUPT, "memory segment 0x%llx overlaps another",
			       (unsigned long long)addr);
	copy = malloc(len);
	if (!copy || !vec_push(&image->segments)) {
		free(copy);
		return err_nomem(err);
	}
	memcpy(copy, bytes, len);
	memmove(&image->segments.items[at + 1], &image->segments.items[at],
		(image->segments.len - 1 - at) * sizeof(struct segment));
	image->segments.items[at] = (struct segment){.start = addr, .len = len, .bytes = copy};
	return 0;
}

/* A read may run over several segments that lie end to end. */
static int read_image(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct memory_image *image = ctx;
	size_t at = segments_up_to(image, addr);
	char *out = buf;

	while (len) {
		const struct segment *segment;
		uint64_t skip;
		size_t n;

		if (at == 0 || at > image->segments.len)
			return -1;
		segment = &image->segments.items[at - 1];
		skip = addr - segment->start;
		if (addr < segment->start || skip >= segment->len)
			return -1;
		n = segment->len - skip < len ? (size_t)(segment->len - skip) : len;
		memcpy(out, segment->bytes + skip, n);
		out += n;
		addr += n;
		len -= n;
		at++;
	}
	return 0;
}

struct memory memory_of_image(struct memory_image *image)
{
	return (struct memory){.read = read_image, .ctx = image};
}
