#include "unwind/unwind.h"

#include "unwind/backends.h"

#include <stddef.h>

const struct unwind_backend *const *unwind_backends(void)
{
	static const struct unwind_backend *const backends[] = {
#ifdef HAVE_UNWIND
		&unwind_by_libunwind,
#endif
		NULL,
	};

	return backends;
}
