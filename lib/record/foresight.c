#include "record/foresight.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* Two lists of places, in turn: what is read ahead, and what is wanted next time. */
static struct foresight_place *wanted(const struct foresight *foresight)
{
	return foresight->places + FORESIGHT_PLACES;
}

static bool make_room(struct foresight *foresight)
{
	if (!foresight->places)
		foresight->places = calloc(2 * FORESIGHT_PLACES, sizeof(*foresight->places));
	if (!foresight->bytes)
		foresight->bytes = malloc(FORESIGHT_BYTES);
	return foresight->places && foresight->bytes;
}

void foresight_begin(struct foresight *foresight, struct memory_process *live)
{
	struct iovec remote[FORESIGHT_PLACES], local;
	ssize_t got;

	foresight->live = live;
	foresight->ahead = 0;
	foresight->cursor = 0;
	if (!make_room(foresight)) {
		foresight->count = 0;
		return;
	}
	memcpy(foresight->places, wanted(foresight), foresight->count * sizeof(*foresight->places));
	local = (struct iovec){.iov_base = foresight->bytes, .iov_len = foresight->used};
	for (unsigned int i = 0; i < foresight->count; i++)
		remote[i] = (struct iovec){
			.iov_base = (void *)(uintptr_t)foresight->places[i].addr,
			.iov_len = foresight->places[i].len,
		};
	got = foresight->count ? process_vm_readv(live->pid, &local, 1, remote, foresight->count, 0)
			       : 0;
	/* It ends at the first place that is not there any more. */
	while (foresight->ahead < foresight->count &&
	       (ssize_t)(foresight->places[foresight->ahead].offset +
			 foresight->places[foresight->ahead].len) <= got)
		foresight->ahead++;
	foresight->count = 0;
	foresight->used = 0;
}

static void want(struct foresight *foresight, uint64_t addr, size_t len)
{
	if (!foresight->places || foresight->count == FORESIGHT_PLACES ||
	    len > FORESIGHT_BYTES - foresight->used)
		return;
	wanted(foresight)[foresight->count++] = (struct foresight_place){
		.addr = addr,
		.len = (uint32_t)len,
		.offset = foresight->used,
	};
	foresight->used += (uint32_t)len;
}

/* As a rule the next place is the one that was next the time before. */
static const struct foresight_place *foreseen(struct foresight *foresight, uint64_t addr,
					      size_t len)
{
	for (unsigned int i = 0; i < foresight->ahead; i++) {
		unsigned int at = (foresight->cursor + i) % foresight->ahead;
		const struct foresight_place *place = &foresight->places[at];

		if (place->addr == addr && place->len == len) {
			foresight->cursor = at + 1;
			return place;
		}
	}
	return NULL;
}

static int read_foresight(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct foresight *foresight = ctx;
	const struct foresight_place *place = foreseen(foresight, addr, len);
	struct memory live = memory_of_process(foresight->live);

	if (place)
		memcpy(buf, foresight->bytes + place->offset, len);
	else if (memory_read(&live, addr, buf, len))
		return -1;
	want(foresight, addr, len);
	return 0;
}

struct memory memory_of_foresight(struct foresight *foresight)
{
	return (struct memory){.read = read_foresight, .ctx = foresight};
}

void foresight_fini(struct foresight *foresight)
{
	free(foresight->places);
	free(foresight->bytes);
	*foresight = (struct foresight){0};
}
