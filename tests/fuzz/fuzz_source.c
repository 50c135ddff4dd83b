#include "perfmap/source.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_lines(const struct source *source)
{
	size_t len, total = 0;
	const char *line;

	for (uint32_t i = 1; (line = source_line(source, i, &len)); i++)
		total += len;
	if (total > source->len || source_line(source, source_line_count(source) + 1, &len))
		abort();
}

/* The input as a recorded section, and as a source file (in memory, by its /proc name). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sources *sources = sources_new(), *back = sources_new();
	struct strbuf section = {0};
	char path[64];
	int fd = memfd_create("source", MFD_CLOEXEC);

	if (!sources || !back || fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (sources_read(sources, path, "", NULL, NULL) != 1)
		abort();
	check_lines(sources_find(sources, path));
	sources_decode(sources, bytes_of(data, size), NULL);
	if (sources_encode(sources, &section) ||
	    sources_decode(back, bytes_of(section.buf, section.len), NULL))
		abort();
	check_lines(sources_find(back, path));
	close(fd);
	strbuf_fini(&section);
	sources_free(sources);
	sources_free(back);
	return 0;
}
