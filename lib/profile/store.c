#include "profile/store.h"

#include "base/map.h"
#include "perfmap/code.h"
#include "perfmap/source.h"
#include "process/process.h"
#include "profile/objects.h"
#include "symbol/demangle.h"

#include <stdlib.h>
#include <string.h>

/* New stacks have ids in sequence, and so have their cells: a thread's cells of four stacks share
 * a cache line of slots. */
static uint64_t hash_cell(const void *key)
{
	const struct profile_cell *cell = key;
	uint64_t group = map_mix(cell->stack / 4, cell->thread);

	group ^= (uint64_t)(cell->stack << 3 ^ cell->event) << 32;
	return (group & ~(uint64_t)7) | (cell->stack & 3) << 1 | (cell->event & 1);
}

struct profile *profile_new(void)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return NULL;
	intern_init(&profile->strings);
	keyed_init(&profile->threads, sizeof(struct profile_thread), sizeof(struct profile_thread));
	keyed_init(&profile->functions, sizeof(struct function_item), FUNCTION_KEY_SIZE);
	keyed_init(&profile->frames, sizeof(struct frame_item), sizeof(struct frame_key));
	keyed_init_hash(&profile->cells, sizeof(struct profile_cell), 3 * sizeof(uint32_t),
			hash_cell);
	keyed_init(&profile->pairs, sizeof(struct profile_pair), sizeof(struct profile_pair));
	keyed_init(&profile->products, sizeof(struct profile_product), 3 * sizeof(uint32_t));
	keyed_init(&profile->codes_seen, sizeof(struct code_key), sizeof(struct code_key));
	memuse_init(&profile->memuse);
	profile->processes = process_table_new();
	profile->codes = py_codes_new(&profile->strings);
	profile->sources = sources_new();
	if (!profile->processes || !profile->codes || !profile->sources ||
	    !stacks_init(&profile->stacks)) {
		profile_free(profile);
		return NULL;
	}
	return profile;
}

bool profile_add_incomplete(struct profile *profile, const char *reason, const char *object,
			    uint64_t samples)
{
	struct profile_incomplete *row;

	for (size_t i = 0; i < profile->incomplete.len; i++) {
		row = &profile->incomplete.items[i];
		if (strcmp(row->reason, reason) == 0 && strcmp(row->object, object) == 0) {
			row->samples += samples;
			return true;
		}
	}
	row = vec_push(&profile->incomplete);
	if (!row)
		return false;
	*row = (struct profile_incomplete){profile_keep(profile, reason),
					   profile_keep(profile, object), samples};
	return row->reason && row->object;
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	objects_free(profile->objects);
	jit_fini(&profile->jit);
	vec_fini(&profile->jit_codes);
	map_fini(&profile->jit_by_function);
	sources_free(profile->sources);
	py_codes_free(profile->codes);
	process_table_free(profile->processes);
	vec_fini(&profile->events);
	vec_fini(&profile->incomplete);
	vec_fini(&profile->phases);
	keyed_fini(&profile->codes_seen);
	memuse_fini(&profile->memuse);
	keyed_fini(&profile->products);
	keyed_fini(&profile->pairs);
	keyed_fini(&profile->cells);
	stacks_fini(&profile->stacks);
	free(profile->leaf_kinds);
	keyed_fini(&profile->frames);
	keyed_fini(&profile->functions);
	keyed_fini(&profile->threads);
	intern_fini(&profile->strings);
	free(profile);
}

uint32_t profile_add_thread(struct profile *profile, uint32_t pid, uint32_t tid, const char *comm)
{
	struct profile_thread key = {pid, tid, intern_str(&profile->strings, comm)};

	return key.comm == INTERN_NONE ? KEYED_NONE : keyed_add(&profile->threads, &key, NULL);
}

uint32_t profile_add_frame(struct profile *profile, enum frame_origin origin, uint32_t owner,
			   uint64_t addr)
{
	struct frame_key key = {origin, owner, addr};

	return keyed_add(&profile->frames, &key, NULL);
}

uint32_t profile_add_cell(struct profile *profile, uint32_t thread, uint32_t stack, uint32_t event)
{
	uint32_t key[] = {thread, stack, event};

	return keyed_add(&profile->cells, key, NULL);
}

bool profile_add_product(struct profile *profile, uint32_t thread, uint32_t stack, uint32_t a,
			 uint32_t b, double sum)
{
	struct profile_pair pair = {a < b ? a : b, a < b ? b : a};
	uint32_t key[] = {thread, stack, keyed_add(&profile->pairs, &pair, NULL)}, id;

	if (key[2] == KEYED_NONE)
		return false;
	id = keyed_add(&profile->products, key, NULL);
	if (id != KEYED_NONE)
		((struct profile_product *)keyed_at(&profile->products, id))->sum += sum;
	return id != KEYED_NONE;
}

uint32_t profile_add_function(struct profile *profile, const struct function_item *key,
			      uint64_t size)
{
	const struct profile_function *function = &key->function;
	bool added;
	uint32_t id;

	if (function->name == INTERN_NONE || function->qualname == INTERN_NONE ||
	    function->file == INTERN_NONE)
		return KEYED_NONE;
	id = keyed_add(&profile->functions, key, &added);
	if (added)
		((struct function_item *)keyed_at(&profile->functions, id))->size = size;
	return id;
}

const struct jit_code *profile_jit_code(const struct profile *profile, uint32_t function)
{
	uint64_t *index = map_get(&profile->jit_by_function, function);

	return index ? &profile->jit_codes.items[*index - 1] : NULL;
}

/* The version of an interface that linkers put behind names, "dlopen@@GLIBC_2.34", is none of the
 * source; "@plt" says where the code is. */
static size_t unversioned(const char *name, size_t len)
{
	const char *at = memchr(name, '@', len);

	return at && at != name && strcmp(at, "@plt") != 0 ? (size_t)(at - name) : len;
}

uint32_t profile_symbol_id(struct profile *profile, const char *symbol, bool inlined)
{
	struct strbuf plain = {0};
	uint32_t id = INTERN_NONE;

	if (!demangle(symbol, &plain))
		strbuf_str(&plain, symbol);
	plain.len = unversioned(strbuf_text(&plain), plain.len);
	if (inlined)
		strbuf_str(&plain, " (inlined)");
	if (!strbuf_failed(&plain))
		id = intern_add(&profile->strings, strbuf_text(&plain), plain.len);
	strbuf_fini(&plain);
	return id;
}

const char *profile_keep(struct profile *profile, const char *text)
{
	uint32_t id = intern_str(&profile->strings, text);

	return id == INTERN_NONE ? NULL : intern_text(&profile->strings, id, NULL);
}

const char *frame_kind_name(enum frame_kind kind)
{
	static const char *const names[] = {
		[FRAME_PYTHON] = "python",
		[FRAME_NATIVE] = "native",
		[FRAME_KERNEL] = "kernel",
	};

	return names[kind];
}

const struct profile_summary *profile_summary(const struct profile *profile)
{
	return &profile->summary;
}

const char *profile_text(const struct profile *profile, uint32_t string)
{
	return intern_text(&profile->strings, string, NULL);
}

size_t profile_event_count(const struct profile *profile)
{
	return profile->events.len;
}

size_t profile_thread_count(const struct profile *profile)
{
	return profile->threads.count;
}

size_t profile_function_count(const struct profile *profile)
{
	return profile->functions.count;
}

size_t profile_frame_count(const struct profile *profile)
{
	return profile->frames.count;
}

size_t profile_stack_count(const struct profile *profile)
{
	return profile->stacks.nodes.len;
}

size_t profile_cell_count(const struct profile *profile)
{
	return profile->cells.count;
}

const struct profile_event *profile_event(const struct profile *profile, uint32_t event)
{
	return &profile->events.items[event];
}

const struct profile_thread *profile_thread(const struct profile *profile, uint32_t thread)
{
	return keyed_at(&profile->threads, thread);
}

const struct profile_function *profile_function(const struct profile *profile, uint32_t function)
{
	return &((struct function_item *)keyed_at(&profile->functions, function))->function;
}

uint64_t profile_function_start(const struct profile *profile, uint32_t function)
{
	return ((struct function_item *)keyed_at(&profile->functions, function))->vaddr;
}

bool profile_frame_offset(const struct profile *profile, uint32_t frame, uint64_t *offset)
{
	const struct frame_key *key = &profile_frame_item(profile, frame)->key;
	const struct dso *dso = key->origin == ORIGIN_NATIVE
					? process_dso(profile->processes, key->owner)
					: NULL;

	*offset = key->addr;
	return dso && dso->kind == DSO_ELF;
}

const struct profile_frame *profile_frame(const struct profile *profile, uint32_t frame)
{
	return &profile_frame_item(profile, frame)->frame;
}

const struct profile_stack *profile_stack(const struct profile *profile, uint32_t stack)
{
	return &profile->stacks.nodes.items[stack];
}

enum frame_kind profile_stack_kind(const struct profile *profile, uint32_t stack)
{
	const struct profile_frame *frame;

	if (profile->leaf_kinds)
		return (enum frame_kind)profile->leaf_kinds[stack];
	if (!stack)
		return FRAME_NATIVE;
	frame = profile_frame(profile, profile_stack(profile, stack)->frame);
	return profile_function(profile, frame->function)->kind;
}

const struct profile_cell *profile_cell(const struct profile *profile, size_t cell)
{
	return keyed_at(&profile->cells, (uint32_t)cell);
}

size_t profile_pair_count(const struct profile *profile)
{
	return profile->pairs.count;
}

size_t profile_product_count(const struct profile *profile)
{
	return profile->products.count;
}

const struct profile_pair *profile_pair(const struct profile *profile, size_t pair)
{
	return keyed_at(&profile->pairs, (uint32_t)pair);
}

const struct profile_product *profile_product(const struct profile *profile, size_t product)
{
	return keyed_at(&profile->products, (uint32_t)product);
}

const struct source *profile_source(const struct profile *profile, uint32_t file)
{
	const char *name = profile_text(profile, file);
	const struct source *source = sources_find(profile->sources, name);

	/* A recording without the text is as good as the file that lies here. */
	if (!source && sources_read(profile->sources, name, "", ".", NULL) > 0)
		source = sources_find(profile->sources, name);
	return source;
}

size_t profile_incomplete_count(const struct profile *profile)
{
	return profile->incomplete.len;
}

const struct profile_incomplete *profile_incomplete(const struct profile *profile, size_t row)
{
	return &profile->incomplete.items[row];
}
