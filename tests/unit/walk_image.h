#ifndef PYPERF_TEST_WALK_IMAGE_H
#define PYPERF_TEST_WALK_IMAGE_H

#include "perfmap/walk.h"
#include "process/memory.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * What a walker reads of a stopped thread, as text:
 *
 *      version 0x030d00f0
 *      thread ADDR                             the thread pointer
 *      runtime ADDR                            of _PyRuntime
 *      key ADDR                                of the thread key's int
 *      current ADDR                            of tstate_current, 0 where there is none
 *      tsd SELF BLOCKS BLOCK_KEYS BLOCK_COUNT ENTRY_SIZE DATA
 *      memory ADDR HEX                         any number of them
 *      frame CODE OFFSET ENTRY QUALNAME        what the interpreter itself said, leaf first
 */

#define WALK_IMAGE_FRAMES 64

struct walk_image {
	uint64_t version, thread;
	struct py_process process;
	struct memory_image *memory;
	struct {
		uint64_t code;
		uint32_t offset;
		bool entry;
		char qualname[80];
	} frame[WALK_IMAGE_FRAMES];
	size_t frames;
};

/* Reads overlap, segments of an image may not: only what is not there yet is added. */
static inline bool walk_image_add(struct memory_image *image, uint64_t addr,
				  const unsigned char *bytes, size_t len)
{
	struct memory memory = memory_of_image(image);
	size_t start = 0;
	char byte;

	for (size_t i = 0; i <= len; i++) {
		if (i < len && memory_read(&memory, addr + i, &byte, 1) != 0)
			continue;
		if (memory_image_add(image, addr + start, bytes + start, i - start, NULL) != 0)
			return false;
		start = i + 1;
	}
	return true;
}

static inline bool walk_image_hex(struct walk_image *image, const char *line)
{
	unsigned char bytes[16384];
	char *at;
	uint64_t addr = strtoull(line, &at, 16);
	size_t len = 0;
	unsigned int byte;

	while (isspace((unsigned char)*at))
		at++;
	while (len < sizeof(bytes) && sscanf(at, "%2x", &byte) == 1) {
		bytes[len++] = (unsigned char)byte;
		at += 2;
	}
	return walk_image_add(image->memory, addr, bytes, len);
}

/* Reads an image and finds its layout as runtime_find() would. */
static inline bool walk_image_load(struct walk_image *image, const char *path)
{
	static char line[40000];
	unsigned char offsets[PY_DEBUG_OFFSETS_BYTES];
	FILE *file = fopen(path, "r");
	struct py_version version;
	struct memory memory;
	bool good = file;

	memset(image, 0, sizeof(*image));
	image->memory = memory_image_new();
	while (good && fgets(line, sizeof(line), file)) {
		struct py_tsd *tsd = &image->process.tsd;
		size_t n = image->frames;
		int entry;

		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "memory ", 7) == 0)
			good = walk_image_hex(image, line + 7);
		else if (strncmp(line, "tsd ", 4) == 0)
			good = sscanf(line, "tsd %d %d %u %u %u %u", &tsd->self, &tsd->blocks,
				      &tsd->block_keys, &tsd->block_count, &tsd->entry_size,
				      &tsd->data) == 6;
		else if (strncmp(line, "frame ", 6) == 0) {
			good = n < WALK_IMAGE_FRAMES &&
			       sscanf(line, "frame %" SCNx64 " %" SCNu32 " %d %79[^\n]",
				      &image->frame[n].code, &image->frame[n].offset, &entry,
				      image->frame[n].qualname) == 4;
			image->frame[n].entry = entry;
			image->frames++;
		} else {
			good = sscanf(line, "version %" SCNx64, &image->version) == 1 ||
			       sscanf(line, "thread %" SCNx64, &image->thread) == 1 ||
			       sscanf(line, "runtime %" SCNx64,
				      (uint64_t *)&image->process.runtime) == 1 ||
			       sscanf(line, "key %" SCNx64, (uint64_t *)&image->process.tss_key) ==
				       1 ||
			       sscanf(line, "current %" SCNx64,
				      (uint64_t *)&image->process.current) == 1;
		}
	}
	if (file)
		fclose(file);
	if (!good)
		return false;
	memory = memory_of_image(image->memory);
	version = py_version_of_hex(image->version);
	memset(offsets, 0, sizeof(offsets));
	if (version.minor >= 13 &&
	    memory_read(&memory, image->process.runtime, offsets, sizeof(offsets)) != 0)
		return false;
	return py_layout_find(&version, offsets, sizeof(offsets), &image->process.layout, NULL) ==
	       0;
}

static inline void walk_image_free(struct walk_image *image)
{
	memory_image_free(image->memory);
}

/* Where a code object has the name that frames of an image go by. */
static inline uint16_t walk_image_name(const struct py_layout *layout)
{
	return layout->code_qualname ? layout->code_qualname : layout->code_name;
}

/* Reads an ASCII string of the target; false where it is none. */
static inline bool walk_image_string(const struct memory *memory, const struct py_layout *layout,
				     uint64_t addr, char *buf, size_t size)
{
	uint64_t len;
	uint32_t state;

	if (memory_read(memory, addr + layout->unicode_length, &len, sizeof(len)) ||
	    memory_read(memory, addr + layout->unicode_state, &state, sizeof(state)) ||
	    (state >> 2 & 7) != 1 || !(state & 1u << 6) || len >= size ||
	    memory_read(memory, addr + layout->unicode_ascii_data, buf, len))
		return false;
	buf[len] = '\0';
	return true;
}

#endif
