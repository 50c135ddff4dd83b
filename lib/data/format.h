#ifndef PYPERF_DATA_FORMAT_H
#define PYPERF_DATA_FORMAT_H

#include <stdint.h>

/*
 * perf.data on disk (linux tools/perf/Documentation/perf.data-file-format.txt, util/header.h,
 * lib/perf/include/perf/event.h). Shared by reader and writer, seen by nobody else.
 */

#define FORMAT_MAGIC 0x32454c4946524550ull     /* "PERFILE2" */
#define FORMAT_MAGIC_OLD 0x454c494646524550ull /* "PERFFILE", before 2.6.3x knew byte orders */

#define FORMAT_FEATURES 256
#define FORMAT_NAME_ALIGN 64 /* strings of features are padded to it */
#define FORMAT_ATTR_MIN 64   /* PERF_ATTR_SIZE_VER0 */
#define FORMAT_ATTR_MAX 128  /* the largest that perf 6.1 opens */
#define FORMAT_RECORD_MAX 65535

struct format_section {
	uint64_t offset, size;
};

struct format_header {
	uint64_t magic, size, attr_size;
	struct format_section attrs, data, event_types;
	uint64_t features[FORMAT_FEATURES / 64];
};

#define FORMAT_PIPE_HEADER_SIZE 16u
#define FORMAT_HEADER_SIZE_MIN 72u /* without the feature bits */

enum format_feature {
	FEATURE_TRACING_DATA = 1,
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_VERSION = 5,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_CPUDESC = 8,
	FEATURE_CPUID = 9,
	FEATURE_TOTAL_MEM = 10,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_GROUP_DESC = 17,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_CLOCKID = 23,
	FEATURE_COMPRESSED = 27,
	FEATURE_CLOCK_DATA = 29,
	FEATURE_PRIVATE = 200, /* from here on ours */
};

#define FORMAT_EVENT_UPDATE_NAME 2
#define FORMAT_COMPRESSION_ZSTD 1
#define FORMAT_BUILD_ID_SIZE 20
#define FORMAT_MISC_BUILD_ID_SIZE (1u << 15) /* the byte behind the id is its length */

#endif
