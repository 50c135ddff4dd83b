#ifndef PYPERF_MAILBOX_H
#define PYPERF_MAILBOX_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Messages from one process to another through memory that both have since a fork: one writes, one
 * reads, neither waits. The reader trusts no length that it finds there.
 *
 *      writer: mailbox_put(), false when there is no room: the message is to be counted as lost
 *      reader: while (mailbox_next(box, &kind, &body)) ...    body is valid until the next call
 */
struct mailbox {
	struct mailbox_shared *shared;
	unsigned char *data;
	uint64_t next; /* the reader's: what follows the message that was given out */
};

/* `size` is a power of two. Before the fork. */
int mailbox_open(struct mailbox *box, size_t size, struct err *err);
void mailbox_close(struct mailbox *box);

struct mailbox_part {
	const void *bytes;
	size_t len;
};
/* One message of several parts, one behind the other. */
bool mailbox_put(struct mailbox *box, uint32_t kind, const struct mailbox_part *parts,
		 size_t count);
bool mailbox_next(struct mailbox *box, uint32_t *kind, struct bytes *body);
/* Bytes that wait to be read, of how many there can be. */
size_t mailbox_pending(const struct mailbox *box);
size_t mailbox_size(const struct mailbox *box);

#endif
