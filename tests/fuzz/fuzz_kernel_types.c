#include "perfmap/kernel_types.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
#ifdef HAVE_BPF
	struct kernel_type_names names = {0};
	struct strbuf out = {0};
	const char **slot;

	for (size_t i = 0; i < 3; i++)
		if ((slot = vec_push(&names)))
			*slot = (const char *const[]){"node", "large", "other"}[i];
	(void)kernel_types_pick(data, size, &names, &out, NULL);
	strbuf_fini(&out);
	vec_fini(&names);
#endif
	return 0;
}
