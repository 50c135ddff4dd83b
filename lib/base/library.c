#include "base/library.h"

#include <dlfcn.h>

int library_load(const char *file, const struct library_call *calls, size_t count, struct err *err)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; library && i < count; i++) {
		*calls[i].address = dlsym(library, calls[i].name);
		if (!*calls[i].address)
			library = NULL;
	}
	if (library)
		return 0;
	err_set(err, ERR_UNSUPPORTED, "cannot load a library: %s", dlerror());
	err_hint(err, "install %s, which pyperf was built with", file);
	return ERR_UNSUPPORTED;
}
