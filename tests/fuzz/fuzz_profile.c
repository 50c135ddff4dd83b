#include "tests/unit/all_views.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A few bytes may expand to any number of samples; this is what fits into memory. */
#define INPUT_MAX (1u << 18)

/* Any bytes as a recording, from the file to all that is shown of it. What loads must be shown. The
 * seeds name objects and a host that no machine has, and there is no home with copies of them, so
 * that a run depends on the input alone. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile *profile = NULL;
	struct data_file *file;
	char path[64];
	FILE *null;
	int fd;

	if (size > INPUT_MAX)
		return 0;
	setenv("HOME", "/nonexistent", 1);
	null = fopen("/dev/null", "w");
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (!null || fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (data_open(&file, path, NULL) == 0) {
		if (all_views_write(null, null, file, 2, &profile, NULL) && profile)
			abort();
		profile_free(profile);
		data_close(file);
	}
	close(fd);
	fclose(null);
	return 0;
}
