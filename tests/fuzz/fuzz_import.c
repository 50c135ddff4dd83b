#include "output/export.h"
#include "profile/import.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Any bytes as a profile of another tool. What is read must be ranked and written again. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct profile_options options = {0};
	const struct view_filter filter = {0};
	struct export_options export = {.filter = &filter};
	struct profile *profile = NULL;
	struct view *view = NULL;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	FILE *null = fopen("/dev/null", "w");
	char path[64];

	if (!null || fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (profile_is_import(path) && profile_import(&profile, path, &options, NULL) == 0) {
		if (view_functions(&view, profile, &filter, VIEW_BY_TOTAL, 0, NULL))
			abort();
		view_free(view);
		export.profile = profile;
		if (export_folded(null, &export, NULL) || export_callgrind(null, &export, NULL))
			abort();
	}
	profile_free(profile);
	fclose(null);
	close(fd);
	return 0;
}
