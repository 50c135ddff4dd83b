#include "ring/spe.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A buffer in one piece, and in two: what is decoded must not depend on where a piece is shown up
 * to, as long as the rest is shown again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t sums[2] = {0, 0}, broken[2];

	for (int parts = 0; parts < 2; parts++) {
		struct spe_decoder decoder = {.offset = 0};
		struct spe_record record;
		size_t at = 0, shown = parts ? size / 2 : size;

		spe_begin(&decoder, 4096);
		for (;;) {
			struct bytes in = bytes_of(data + at, shown - at);

			while (spe_next(&decoder, &in, &record))
				sums[parts] = 31 * sums[parts] + record.pc + record.addr +
					      record.time + record.latency + record.context +
					      spe_data_source(&record, 0x410fd0c0) +
					      spe_data_source(&record, 0);
			if (bytes_left(&in) >= SPE_PACKET_MAX)
				abort();
			at = shown - bytes_left(&in);
			if (shown == size)
				break;
			shown = size;
		}
		spe_end(&decoder, size - at);
		spe_finish(&decoder);
		broken[parts] = decoder.broken;
	}
	if (sums[0] != sums[1] || broken[0] != broken[1] || broken[0] > size)
		abort();
	return 0;
}
