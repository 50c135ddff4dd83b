#include "event/internal.h"

#include "event/pfm.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The grammar of -e, which is perf's:
 *
 *   list  = entry { "," entry }
 *   entry = event | "{" event { "," event } "}" [ ":" modifiers ]      S and W too
 *   event = name [ ":" modifiers ]               cycles:u, r1a8, sched:sched_switch:k
 *         | pmu "/" terms "/" [ modifiers ]      cpu/event=0x3c,umask=0/pp
 *         | pmu "::" ...                         what libpfm4 makes of it
 *
 * Commas between the slashes belong to the terms. A list that fails halfway leaves nothing behind.
 */

#define MODIFIERS "ukhGHIpPDe"

struct parser {
	const struct event_system *sys;
	struct event_list *list;
	const char *at;
	struct err *err;
};

static void truncate_list(struct event_list *list, size_t len)
{
	while (list->len > len)
		event_spec_fini(&list->items[--list->len]);
}

static int no_modifier(const char *text, const char *modifiers, const char *at, struct err *err)
{
	static const struct {
		char letter;
		const char *why;
	} refused[] = {
		{'S', "it is a group's: {cycles,instructions}:S"},
		{'W', "it is a group's: {cycles,instructions}:W"},
		{'b', "counting by BPF programs is perf stat's"},
	};

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (refused[i].letter != *at)
			continue;
		err_set(err, ERR_USAGE, "'%s': the modifier '%c' is not supported: %s", text, *at,
			refused[i].why);
		err_hint(err, "leave '%c' out", *at);
		return ERR_USAGE;
	}
	if (*modifiers && isprint((unsigned char)*at))
		err_set(err, ERR_USAGE, "'%s': there is no modifier '%c'", text, *at);
	else
		err_set(err, ERR_USAGE, "'%s': modifiers are missing", text);
	err_hint(err,
		 "modifiers are u (user), k (kernel), h (hypervisor), I (not idle), G (guest), "
		 "H (host), p to ppp or P (precise), D (pinned), e (exclusive)");
	return ERR_USAGE;
}

/* As perf: u, k and h each leave the other two out, so do G and H; a group's modifiers add to
 * those of the event. */
static int apply_modifiers(struct perf_event_attr *attr, const char *text, const char *modifiers,
			   struct err *err)
{
	bool levels = attr->exclude_user || attr->exclude_kernel || attr->exclude_hv;
	bool sides = attr->exclude_guest || attr->exclude_host;
	unsigned int precise = 0;

	if (!*modifiers)
		return no_modifier(text, modifiers, modifiers, err);
	for (const char *at = modifiers; *at; at++) {
		if (strchr("ukh", *at) && !levels) {
			attr->exclude_user = attr->exclude_kernel = attr->exclude_hv = 1;
			levels = true;
		}
		if (strchr("GH", *at) && !sides) {
			attr->exclude_guest = attr->exclude_host = 1;
			sides = true;
		}
		switch (*at) {
		case 'u':
			attr->exclude_user = 0;
			break;
		case 'k':
			attr->exclude_kernel = 0;
			break;
		case 'h':
			attr->exclude_hv = 0;
			break;
		case 'G':
			attr->exclude_guest = 0;
			break;
		case 'H':
			attr->exclude_host = 0;
			break;
		case 'I':
			attr->exclude_idle = 1;
			break;
		case 'p':
			if (++precise > 3)
				return err_set(err, ERR_USAGE, "'%s': ppp is the highest precision",
					       text);
			break;
		case 'P':
			precise = 3;
			break;
		case 'D':
			attr->pinned = 1;
			break;
		case 'e':
			attr->exclusive = 1;
			break;
		default:
			return no_modifier(text, modifiers, at, err);
		}
	}
	if (precise) {
		attr->precise_ip = precise;
		/* PEBS cannot tell a guest's samples apart, so the kernel wants them left out. */
		if (!sides)
			attr->exclude_guest = 1;
	}
	return 0;
}

static bool parse_raw(const char *name, struct perf_event_attr *attr)
{
	size_t len = strlen(name);

	if (name[0] != 'r' || len < 2 || len > 17 ||
	    strspn(name + 1, "0123456789abcdefABCDEF") != len - 1)
		return false;
	attr->type = PERF_TYPE_RAW;
	attr->config = strtoull(name + 1, NULL, 16);
	return true;
}

static int unknown_event(const struct parser *p, const char *text)
{
	err_set(p->err, ERR_USAGE, "there is no event '%s'", text);
	event_suggest(p->sys, text, p->err);
	return ERR_USAGE;
}

/* libpfm4 wants ":u:k"; perf's ":ukpp" behind one of its names is split off. */
static int resolve_pfm(const struct parser *p, const char *text, struct event_spec *spec)
{
	const char *modifiers = strrchr(text, ':');
	struct err why = {0};
	int ret = event_pfm_parse(text, &spec->attr, sizeof(spec->attr), &why);
	char *name;

	if (ret == ERR_USAGE && modifiers && modifiers > text && modifiers[-1] != ':' &&
	    strspn(modifiers + 1, MODIFIERS) == strlen(modifiers + 1)) {
		name = strndup(text, (size_t)(modifiers - text));
		if (!name)
			return err_nomem(p->err);
		if (event_pfm_parse(name, &spec->attr, sizeof(spec->attr), NULL) == 0)
			ret = apply_modifiers(&spec->attr, text, modifiers + 1, &why);
		free(name);
	}
	if (ret < 0 && p->err)
		*p->err = why;
	return ret;
}

/* "system:name" or "system:name:modifiers". A name that libpfm4 knows without its "pmu::" has the
 * same look, so that is tried before the tracepoint is given up. */
static int resolve_tracepoint(const struct parser *p, const char *whole, char *system, char *name,
			      struct event_spec *spec)
{
	char *modifiers = strchr(name, ':');
	struct err why = {0};
	int ret;

	if (modifiers)
		*modifiers++ = '\0';
	ret = event_tracepoint_parse(p->sys, system, name, &spec->attr, &why);
	if (ret == 0)
		return modifiers ? apply_modifiers(&spec->attr, whole, modifiers, p->err) : 0;
	if (resolve_pfm(p, whole, spec) == 0)
		return 0;
	/* "cycels:u" is a mistyped event rather than a tracepoint. */
	if (strspn(name, MODIFIERS "SWb") == strlen(name))
		return unknown_event(p, system);
	if (ret != ERR_NOT_FOUND) {
		if (p->err)
			*p->err = why;
		return ret;
	}
	name[-1] = ':';
	return unknown_event(p, system);
}

/* Without slashes. `text` may be written to; spec->name has it whole. */
static int resolve_name(const struct parser *p, char *text, struct event_spec *spec)
{
	const char *whole = spec->name;
	char *modifiers;
	int ret;

	if (strstr(text, "::")) {
		ret = resolve_pfm(p, text, spec);
		return ret == ERR_NOT_FOUND ? unknown_event(p, text) : ret;
	}
	modifiers = strchr(text, ':');
	if (modifiers)
		*modifiers++ = '\0';
	if (event_name_find(text, &spec->attr) || event_sysfs_alias(p->sys, text, &spec->attr) ||
	    parse_raw(text, &spec->attr))
		return modifiers ? apply_modifiers(&spec->attr, whole, modifiers, p->err) : 0;
	if (modifiers)
		return resolve_tracepoint(p, whole, text, modifiers, spec);
	ret = resolve_pfm(p, text, spec);
	return ret == ERR_NOT_FOUND ? unknown_event(p, text) : ret;
}

/* "cycles/period=1000/u" is called "cycles:u", where its terms do not name it. */
static int resolve_terms(const struct parser *p, char *text, char *terms, const char *modifiers,
			 struct event_spec *spec, char **renamed)
{
	char *plain;
	int ret;

	if (asprintf(&plain, "%s%s%s", text, *modifiers ? ":" : "", modifiers) < 0)
		return err_nomem(p->err);
	ret = resolve_name(p, text, spec);
	if (!ret)
		ret = event_terms_generic(text, terms, &spec->attr, renamed, p->err);
	if (ret < 0 || *renamed)
		free(plain);
	else
		*renamed = plain;
	return ret;
}

/* "NAME/TERMS/MODIFIERS", where NAME is a PMU, or an event. */
static int resolve_slashes(const struct parser *p, char *text, struct event_spec *spec)
{
	char *terms = strchr(text, '/'), *end = strrchr(text, '/'), *renamed = NULL;
	char *modifiers = end + 1, *whole = spec->name;
	struct perf_event_attr attr;
	int ret;

	if (terms == end) {
		err_set(p->err, ERR_USAGE, "'%s': the second '/' is missing", whole);
		err_hint(p->err, "a PMU's event is written pmu/terms/, as in cpu/event=0x3c/");
		return ERR_USAGE;
	}
	*terms++ = *end = '\0';
	modifiers += *modifiers == ':';
	if (strchr(text, ':') || event_name_find(text, &attr))
		ret = resolve_terms(p, text, terms, modifiers, spec, &renamed);
	else
		ret = event_sysfs_parse(p->sys, text, terms, &spec->attr, &renamed, p->err);
	spec->traces = !ret && event_sysfs_traces(text);
	if (!ret && *modifiers)
		ret = apply_modifiers(&spec->attr, whole, modifiers, p->err);
	if (renamed) {
		free(spec->name);
		spec->name = renamed;
	}
	return ret;
}

static int resolve(const struct parser *p, char *text, struct event_spec *spec)
{
	return strchr(text, '/') ? resolve_slashes(p, text, spec) : resolve_name(p, text, spec);
}

static void skip_spaces(struct parser *p)
{
	while (isspace((unsigned char)*p->at))
		p->at++;
}

/* How far an event reaches: to a comma or brace outside the slashes. */
static size_t event_length(const char *text)
{
	bool terms = false;
	size_t len;

	for (len = 0; text[len]; len++) {
		if (text[len] == '/')
			terms = !terms;
		else if (!terms && strchr(",{}", text[len]))
			break;
	}
	return len;
}

static int parse_event(struct parser *p, int group)
{
	size_t len = event_length(p->at), trimmed = len;
	const char *text = p->at;
	struct event_spec *spec;
	char *copy;
	int ret;

	while (trimmed && isspace((unsigned char)text[trimmed - 1]))
		trimmed--;
	if (!trimmed) {
		err_set(p->err, ERR_USAGE, "an event's name is missing at '%.40s'", text);
		err_hint(p->err, "events are parted by commas: cycles,cache-misses");
		return ERR_USAGE;
	}
	spec = vec_push(p->list);
	if (!spec)
		return err_nomem(p->err);
	spec->attr.size = sizeof(spec->attr);
	spec->group = group;
	spec->leader = group < 0 || p->list->len < 2 || spec[-1].group != group;
	spec->name = strndup(text, trimmed);
	copy = strndup(text, trimmed);
	ret = spec->name && copy ? resolve(p, copy, spec) : err_nomem(p->err);
	free(copy);
	/* Only a leader can be pinned or exclusive (linux kernel/events/core.c). */
	if (!spec->leader)
		spec->attr.pinned = spec->attr.exclusive = 0;
	p->at += len;
	return ret;
}

/* S and W say how the group is sampled and what becomes of it where it does not fit; the others are
 * its events'. */
static void take_group_modifiers(struct parser *p, size_t first, char *modifiers)
{
	bool lead = strchr(modifiers, 'S'), weak = strchr(modifiers, 'W');
	char *kept = modifiers;

	for (const char *at = modifiers; *at; at++)
		if (*at != 'S' && *at != 'W')
			*kept++ = *at;
	*kept = '\0';
	for (size_t i = first; i < p->list->len; i++) {
		p->list->items[i].counted = lead && i > first;
		p->list->items[i].weak = weak;
	}
}

static int modify_group(struct parser *p, size_t first, char *modifiers)
{
	if (*modifiers) {
		take_group_modifiers(p, first, modifiers);
		if (!*modifiers)
			return 0;
	}
	for (size_t i = first; i < p->list->len; i++) {
		struct event_spec *spec = &p->list->items[i];
		int ret = apply_modifiers(&spec->attr, modifiers, modifiers, p->err);
		char *name;

		if (ret < 0)
			return ret;
		if (!spec->leader)
			spec->attr.pinned = spec->attr.exclusive = 0;
		name = event_name_extend(spec, modifiers);
		if (!name)
			return err_nomem(p->err);
		free(spec->name);
		spec->name = name;
	}
	return 0;
}

static int parse_group(struct parser *p)
{
	size_t first = p->list->len, len;
	int group = event_list_next_group(p->list), ret;
	char *modifiers;

	do {
		p->at++; /* '{' or ',' */
		skip_spaces(p);
		if (*p->at == '{')
			return err_set(p->err, ERR_USAGE, "a group cannot hold a group");
		ret = parse_event(p, group);
		if (ret < 0)
			return ret;
	} while (*p->at == ',');
	if (*p->at != '}')
		return err_set(p->err, ERR_USAGE, "a group's '}' is missing");
	p->at++;
	if (p->list->len == first + 1)
		p->list->items[first].group = -1;
	if (*p->at != ':')
		return 0;
	p->at++;
	len = strcspn(p->at, ",{} \t\n");
	modifiers = strndup(p->at, len);
	p->at += len;
	ret = modifiers ? modify_group(p, first, modifiers) : err_nomem(p->err);
	free(modifiers);
	return ret;
}

int event_parse_on(const struct event_system *sys, struct event_list *list, const char *text,
		   struct err *err)
{
	struct parser p = {.sys = sys, .list = list, .at = text, .err = err};
	size_t before = list->len;
	int ret;

	for (;;) {
		skip_spaces(&p);
		ret = *p.at == '{' ? parse_group(&p) : parse_event(&p, -1);
		if (ret < 0)
			break;
		skip_spaces(&p);
		if (!*p.at) {
			ret = event_spread(sys, list, before, err);
			break;
		}
		if (*p.at != ',') {
			ret = err_set(err, ERR_USAGE, "'%.40s' does not belong behind an event",
				      p.at);
			err_hint(err, "events are parted by commas: cycles,cache-misses");
			break;
		}
		p.at++;
	}
	if (ret < 0)
		truncate_list(list, before);
	return ret;
}

int event_parse(struct event_list *list, const char *text, struct err *err)
{
	return event_parse_on(&event_system_host, list, text, err);
}

/* Behind the last ':' or '/'. */
size_t event_name_modifiers(const struct event_spec *spec)
{
	const char *name = spec->name, *slash = strrchr(name, '/');
	size_t end = strlen(name), at = end;

	if (slash)
		return (size_t)(slash - name) + 1 + (slash[1] == ':');
	for (;;) {
		size_t start = at;

		while (start && strchr(MODIFIERS, name[start - 1]))
			start--;
		/* The colons of "system:name" and "pmu::NAME" part no modifiers. */
		if (start == at || start < 2 || name[start - 1] != ':' || name[start - 2] == ':' ||
		    (spec->attr.type == PERF_TYPE_TRACEPOINT && !memchr(name, ':', start - 1)))
			return at == end ? end : at + 1;
		at = start - 1;
		/* libpfm4 has each behind a colon of its own. */
		if (!strstr(name, "::"))
			return at + 1;
	}
}

static char *with_modifiers(const struct event_spec *spec, size_t keep, const char *modifiers)
{
	bool parted = !keep || spec->name[keep - 1] == '/' || spec->name[keep - 1] == ':' ||
		      !*modifiers || event_name_modifiers(spec) < keep;
	char *name;

	return asprintf(&name, "%.*s%s%s", (int)keep, spec->name, parted ? "" : ":", modifiers) < 0
		       ? NULL
		       : name;
}

char *event_name_extend(const struct event_spec *spec, const char *modifiers)
{
	return with_modifiers(spec, strlen(spec->name), modifiers);
}

char *event_name_refresh(const struct event_spec *spec)
{
	char modifiers[16];
	size_t keep = event_name_modifiers(spec);

	event_attr_modifiers(&spec->attr, modifiers, sizeof(modifiers));
	if (!modifiers[0] && keep && spec->name[keep - 1] == ':')
		keep--;
	return with_modifiers(spec, keep, modifiers[0] ? modifiers + 1 : "");
}
