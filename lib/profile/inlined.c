#include "profile/inlined.h"

#include "profile/objects.h"
#include "profile/store.h"
#include "symbol/elf.h"

void inlined_fini(struct inlined *inlined)
{
	map_fini(&inlined->by_frame);
	vec_fini(&inlined->lists);
	vec_fini(&inlined->frames);
}

static bool add_frame(struct inlined *inlined, struct profile *profile, struct frame_key at,
		      const char *name)
{
	const struct dso *dso = process_dso(profile->processes, at.owner);
	struct function_item key = {.function.kind = FRAME_NATIVE, .dso = at.owner};
	uint32_t function, *frame;

	key.function.name = profile_symbol_id(profile, name, true);
	key.function.qualname = key.function.name;
	key.function.file = intern_str(&profile->strings, dso->path);
	function = profile_add_function(profile, &key, 0);
	if (function == KEYED_NONE)
		return false;
	frame = vec_push(&inlined->frames);
	if (!frame)
		return false;
	*frame = profile_add_frame(profile, ORIGIN_INLINED, function, at.addr);
	return *frame != KEYED_NONE;
}

bool inlined_find(struct inlined *inlined, struct profile *profile, uint32_t frame, uint64_t vaddr,
		  struct inlined_list *list)
{
	const struct frame_key at = profile_frame_item(profile, frame)->key;
	struct elf_inlined calls[ELF_INLINED_MAX];
	uint64_t *index = map_put(&inlined->by_frame, frame, NULL);
	struct inlined_list *added;
	size_t count;

	*list = (struct inlined_list){0};
	if (!index)
		return false;
	if (*index) {
		*list = inlined->lists.items[*index - 1];
		return true;
	}
	added = vec_push(&inlined->lists);
	if (!added)
		return false;
	*index = inlined->lists.len;
	added->first = (uint32_t)inlined->frames.len;
	count = objects_inlined(profile->objects, at.owner, vaddr, calls, ELF_INLINED_MAX);
	for (size_t i = 0; i < count; i++)
		if (!add_frame(inlined, profile, at, calls[i].name))
			return false;
	added->count = (uint32_t)count;
	*list = *added;
	return true;
}
