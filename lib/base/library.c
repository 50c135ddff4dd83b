#include "base/library.h"

#include <dlfcn.h>
#include <stdbool.h>

int library_load(const char *file, const struct library_call *calls, size_t count, struct err *err)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	bool whole = library;

	for (size_t i = 0; whole && i < count; i++) {
		*calls[i].address = dlsym(library, calls[i].name);
		whole = *calls[i].address;
	}
	if (whole)
		return 0;
	err_set(err, ERR_UNSUPPORTED, "cannot load a library: %s", dlerror());
	err_hint(err, "install %s, which pyperf was built with", file);
	if (library)
		dlclose(library);
	for (size_t i = 0; i < count; i++)
		*calls[i].address = NULL;
	return ERR_UNSUPPORTED;
}
