#include "symbol/saved_inlines.h"

#include <stdlib.h>
#include <string.h>

void saved_inlines_init(struct saved_inlines *inlines)
{
	*inlines = (struct saved_inlines){0};
	intern_init(&inlines->names);
}

void saved_inlines_fini(struct saved_inlines *inlines)
{
	intern_fini(&inlines->names);
	vec_fini(&inlines->sites);
	vec_fini(&inlines->calls);
}

static struct saved_site *add_site(struct saved_inlines *inlines, uint64_t vaddr)
{
	struct saved_site *site = vec_push(&inlines->sites);

	if (site)
		*site = (struct saved_site){.vaddr = vaddr, .first = (uint32_t)inlines->calls.len};
	return site;
}

static bool add_call(struct saved_inlines *inlines, struct saved_site *site, uint32_t name,
		     uint32_t line)
{
	struct saved_call *call = vec_push(&inlines->calls);

	if (!call)
		return false;
	*call = (struct saved_call){name, line};
	site->count++;
	return true;
}

bool saved_inlines_add(struct saved_inlines *inlines, uint64_t vaddr,
		       const struct elf_inlined *calls, size_t count)
{
	struct saved_site *site = count ? add_site(inlines, vaddr) : NULL;

	for (size_t i = 0; site && i < count; i++) {
		uint32_t name = intern_str(&inlines->names, calls[i].name);

		if (name == INTERN_NONE || !add_call(inlines, site, name, calls[i].line))
			return false;
	}
	return site || !count;
}

void saved_inlines_encode(const struct saved_inlines *inlines, struct strbuf *section)
{
	strbuf_u32(section, inlines->names.count);
	for (uint32_t id = 1; id <= inlines->names.count; id++) {
		size_t len;
		const char *name = intern_text(&inlines->names, id, &len);

		strbuf_blob(section, name, len);
	}
	strbuf_u32(section, (uint32_t)inlines->sites.len);
	for (size_t i = 0; i < inlines->sites.len; i++) {
		const struct saved_site *site = &inlines->sites.items[i];

		strbuf_u64(section, site->vaddr);
		strbuf_u32(section, site->count);
		for (uint32_t at = site->first; at < site->first + site->count; at++) {
			strbuf_u32(section, inlines->calls.items[at].name);
			strbuf_u32(section, inlines->calls.items[at].line);
		}
	}
}

static int decode_names(struct saved_inlines *inlines, struct bytes *section, struct err *err)
{
	uint32_t count = bytes_u32(section);

	for (uint32_t id = 1; id <= count && !section->bad; id++) {
		struct bytes name = bytes_blob(section);
		uint32_t added;

		if (section->bad)
			break;
		added = intern_add(&inlines->names, name.at, bytes_left(&name));
		if (added == INTERN_NONE)
			return err_nomem(err);
		/* Each once, and none empty: else the numbers would be others. A symbol has no NUL.
		 */
		section->bad = added != id || memchr(name.at, 0, bytes_left(&name));
	}
	return 0;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct saved_site *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

int saved_inlines_decode(struct saved_inlines *inlines, struct bytes *section, struct err *err)
{
	int ret = decode_names(inlines, section, err);
	uint32_t sites = bytes_u32(section);

	for (uint32_t i = 0; !ret && i < sites && !section->bad; i++) {
		struct saved_site *site = add_site(inlines, bytes_u64(section));
		uint32_t count = bytes_u32(section);

		if (!site)
			return err_nomem(err);
		for (uint32_t n = 0; n < count && !section->bad; n++) {
			uint32_t name = bytes_u32(section), line = bytes_u32(section);

			section->bad |= !name || name > inlines->names.count;
			if (!section->bad && !add_call(inlines, site, name, line))
				return err_nomem(err);
		}
	}
	if (inlines->sites.len)
		qsort(inlines->sites.items, inlines->sites.len, sizeof(*inlines->sites.items),
		      by_vaddr);
	return ret;
}

size_t saved_inlines_at(const struct saved_inlines *inlines, uint64_t vaddr,
			struct elf_inlined *calls, size_t max)
{
	const struct saved_site key = {.vaddr = vaddr};
	const struct saved_site *site = inlines->sites.len
						? bsearch(&key, inlines->sites.items,
							  inlines->sites.len, sizeof(key), by_vaddr)
						: NULL;
	size_t count = 0;

	for (; site && count < site->count && count < max; count++) {
		const struct saved_call *call = &inlines->calls.items[site->first + count];

		calls[count] = (struct elf_inlined){
			.name = intern_text(&inlines->names, call->name, NULL), .line = call->line};
	}
	return count;
}
