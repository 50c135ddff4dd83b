#include "record/mailbox.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * A ring of 8-aligned messages. Offsets grow for ever and are taken modulo the size. A message
 * never crosses the end: what is left there is skipped by a message of its own kind.
 */
#define SKIP UINT32_MAX
#define PAGE 4096u

struct mailbox_shared {
	_Atomic uint64_t head; /* written up to here */
	uint64_t size;
	_Atomic uint64_t tail __attribute__((aligned(64))); /* read up to here */
};

struct head {
	uint32_t kind, len; /* of the body, before it is rounded up */
};

static size_t rounded(size_t len)
{
	return (len + 7) & ~(size_t)7;
}

int mailbox_open(struct mailbox *box, size_t size, struct err *err)
{
	void *map = mmap(NULL, PAGE + size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			 0);

	*box = (struct mailbox){0};
	if (map == MAP_FAILED)
		return err_sys(err, errno, "cannot share memory between processes");
	box->shared = map;
	box->data = (unsigned char *)map + PAGE;
	box->shared->size = size;
	return 0;
}

void mailbox_close(struct mailbox *box)
{
	if (box->shared)
		munmap(box->shared, PAGE + box->shared->size);
	*box = (struct mailbox){0};
}

bool mailbox_put(struct mailbox *box, uint32_t kind, const struct mailbox_part *parts, size_t count)
{
	struct mailbox_shared *shared = box->shared;
	uint64_t head = atomic_load_explicit(&shared->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&shared->tail, memory_order_acquire);
	size_t at = head & (shared->size - 1), len = 0, skip = 0, whole;
	unsigned char *to;

	for (size_t i = 0; i < count; i++)
		len += parts[i].len;
	whole = sizeof(struct head) + rounded(len);
	if (len > shared->size / 2)
		return false;
	if (at + whole > shared->size)
		skip = shared->size - at;
	if (head - tail + skip + whole > shared->size)
		return false;
	if (skip) {
		*(struct head *)(box->data + at) = (struct head){.kind = SKIP};
		head += skip;
		at = 0;
	}
	to = box->data + at;
	*(struct head *)to = (struct head){.kind = kind, .len = (uint32_t)len};
	to += sizeof(struct head);
	for (size_t i = 0; i < count; to += parts[i].len, i++)
		if (parts[i].len)
			memcpy(to, parts[i].bytes, parts[i].len);
	atomic_store_explicit(&shared->head, head + whole, memory_order_release);
	return true;
}

bool mailbox_next(struct mailbox *box, uint32_t *kind, struct bytes *body)
{
	struct mailbox_shared *shared = box->shared;
	uint64_t head;

	atomic_store_explicit(&shared->tail, box->next, memory_order_release);
	head = atomic_load_explicit(&shared->head, memory_order_acquire);
	for (;;) {
		size_t at = box->next & (shared->size - 1);
		struct head message;

		if (box->next == head)
			return false;
		memcpy(&message, box->data + at, sizeof(message));
		if (message.kind == SKIP) {
			box->next += shared->size - at;
			continue;
		}
		/* A writer that died or went wrong: nothing behind it can be told. */
		if (message.len > shared->size - at - sizeof(message) ||
		    sizeof(message) + rounded(message.len) > head - box->next) {
			box->next = head;
			return false;
		}
		*kind = message.kind;
		*body = bytes_of(box->data + at + sizeof(message), message.len);
		box->next += sizeof(message) + rounded(message.len);
		return true;
	}
}

size_t mailbox_pending(const struct mailbox *box)
{
	return (size_t)(atomic_load_explicit(&box->shared->head, memory_order_acquire) -
			atomic_load_explicit(&box->shared->tail, memory_order_relaxed));
}

size_t mailbox_size(const struct mailbox *box)
{
	return box->shared->size;
}
