/*
 * /proc/kallsyms: some 200,000 lines "address type name[\t[module]]", read whole and cut up in
 * place. An entry is 16 bytes and points into the text, where its type stands two bytes before its
 * name. Functions are sorted by address and have one entry each; data and second names are kept
 * for look-ups by name only. A symbol ends where the next one begins.
 */
#include "symbol/kallsyms.h"

#include "base/io.h"
#include "base/partition.h"
#include "base/strbuf.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

#define KALLSYMS_BYTES_MAX (512u << 20)
/* The last function of the image and of each module has no next one to end it. */
#define LAST_FUNCTION_SIZE 4096

struct entry {
	uint64_t addr;
	uint32_t name;	 /* offset in the text */
	uint32_t module; /* the same; 0: the kernel image */
};

struct entries {
	VEC_OF(struct entry)
};

struct kallsyms {
	struct strbuf text;
	struct entries functions;
	struct entries others;
};

static bool is_function(char type)
{
	return strchr("tTwWiI", type) != NULL;
}

static unsigned int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	return (c | 32) >= 'a' && (c | 32) <= 'f' ? (unsigned int)((c | 32) - 'a' + 10) : 16;
}

/* Parses the line that begins at `at` and ends with a newline or with the text; NULL where it is
 * no symbol, else the next line. Puts NULs behind the names. */
static char *parse_line(struct kallsyms *ks, char *at, struct entry *entry, char *type)
{
	char *start = at, *tab;
	unsigned int digit;

	*entry = (struct entry){0};
	while ((digit = hex_digit(*at)) < 16) {
		entry->addr = entry->addr << 4 | digit;
		at++;
	}
	if (at == start || at - start > 16 || at[0] != ' ' || !at[1] || at[1] == '\n' ||
	    at[2] != ' ')
		return NULL;
	*type = at[1];
	at += 3;
	entry->name = (uint32_t)(at - ks->text.buf);
	start = at;
	while (*at && *at != '\n' && *at != '\t')
		at++;
	if (at == start)
		return NULL;
	if (*at == '\t') {
		tab = at;
		*at++ = '\0';
		if (*at != '[')
			return NULL;
		entry->module = (uint32_t)(at + 1 - ks->text.buf);
		while (*at && *at != '\n')
			at++;
		if (at - 1 <= tab + 1 || at[-1] != ']')
			return NULL;
		at[-1] = '\0';
	}
	if (*at)
		*at++ = '\0';
	return at;
}

/* Which of two names of one address is shown: global before local before weak, then the plainer
 * one, then the one that the kernel lists last ("_text" and "_stext" lie at the first function). */
static int compare_entries(const void *a, const void *b, void *ctx)
{
	static const char preference[] = "TtWwIi";
	const struct entry *x = a, *y = b;
	const char *text = ctx;
	size_t bars_x, bars_y;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (text[x->name - 2] != text[y->name - 2])
		return strchr(preference, text[x->name - 2]) < strchr(preference, text[y->name - 2])
			       ? -1
			       : 1;
	bars_x = strspn(text + x->name, "_");
	bars_y = strspn(text + y->name, "_");
	if (bars_x != bars_y)
		return bars_x < bars_y ? -1 : 1;
	return (x->name < y->name) - (x->name > y->name);
}

static int sort_functions(struct kallsyms *ks)
{
	struct entry *items = ks->functions.items;
	size_t kept = 0;

	if (ks->functions.len)
		qsort_r(items, ks->functions.len, sizeof(*items), compare_entries, ks->text.buf);
	for (size_t i = 0; i < ks->functions.len; i++) {
		if (kept && items[kept - 1].addr == items[i].addr) {
			struct entry *other = vec_push(&ks->others);

			if (!other)
				return -1;
			*other = items[i];
		} else {
			items[kept++] = items[i];
		}
	}
	ks->functions.len = kept;
	return 0;
}

static int parse(struct kallsyms *ks, const char *path, struct err *err)
{
	char *at = ks->text.buf, *end = ks->text.buf + ks->text.len;
	bool any_address = false;
	size_t lines = 0;

	while (at < end) {
		struct entry entry, *slot;
		char type;

		at = parse_line(ks, at, &entry, &type);
		lines++;
		if (!at)
			return err_set(err, ERR_CORRUPT, "%s: line %zu is no symbol", path, lines);
		any_address |= entry.addr != 0;
		slot = is_function(type) ? vec_push(&ks->functions) : vec_push(&ks->others);
		if (!slot)
			return err_nomem(err);
		*slot = entry;
	}
	if (!lines)
		return err_set(err, ERR_NOT_FOUND, "%s is empty", path);
	if (!any_address) {
		err_set(err, ERR_PERMISSION, "the kernel hides its addresses in %s", path);
		err_hint(err, "allow them with: sysctl kernel.kptr_restrict=0 "
			      "kernel.perf_event_paranoid=1; or run with CAP_SYSLOG");
		return ERR_PERMISSION;
	}
	return sort_functions(ks) < 0 ? err_nomem(err) : 0;
}

int kallsyms_open(struct kallsyms **out, const char *path, struct err *err)
{
	struct kallsyms *ks = calloc(1, sizeof(*ks));
	int ret;

	*out = NULL;
	if (!ks)
		return err_nomem(err);
	path = path ? path : "/proc/kallsyms";
	ret = io_read_file(path, &ks->text, KALLSYMS_BYTES_MAX, err);
	if (!ret)
		ret = parse(ks, path, err);
	if (ret)
		kallsyms_close(ks);
	else
		*out = ks;
	return ret;
}

void kallsyms_close(struct kallsyms *ks)
{
	if (!ks)
		return;
	strbuf_fini(&ks->text);
	vec_fini(&ks->functions);
	vec_fini(&ks->others);
	free(ks);
}

bool kallsyms_find(const struct kallsyms *ks, uint64_t addr, struct kallsyms_symbol *symbol)
{
	const struct entry *entry, *next;
	size_t at = partition_point(ks->functions.items, ks->functions.len, function,
				    function->addr <= addr);
	const char *text = ks->text.buf;
	uint64_t end;

	if (!at)
		return false;
	entry = &ks->functions.items[at - 1];
	next = at < ks->functions.len ? entry + 1 : NULL;
	end = next ? next->addr : UINT64_MAX;
	if ((!next || strcmp(entry->module ? text + entry->module : "",
			     next->module ? text + next->module : "") != 0) &&
	    end - entry->addr > LAST_FUNCTION_SIZE)
		end = entry->addr + LAST_FUNCTION_SIZE;
	if (addr >= end)
		return false;
	*symbol = (struct kallsyms_symbol){
		.name = text + entry->name,
		.module = entry->module ? text + entry->module : "",
		.start = entry->addr,
		.end = end,
	};
	return true;
}

uint64_t kallsyms_address(const struct kallsyms *ks, const char *name)
{
	const struct entries *tables[] = {&ks->functions, &ks->others};

	for (size_t t = 0; t < 2; t++)
		for (size_t i = 0; i < tables[t]->len; i++)
			if (strcmp(ks->text.buf + tables[t]->items[i].name, name) == 0)
				return tables[t]->items[i].addr;
	return 0;
}
