#include "event/internal.h"

#include "base/io.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * The TRACING_DATA feature: how the fields of a recording's tracepoints lie in their raw data.
 *
 * perf refuses a file that has tracepoints and not this. The layout is trace-cmd's, version 0.6
 * (linux tools/perf/util/trace-event-info.c and trace-event-read.c): header, the formats of the
 * ring buffer's pages and events, then for each system the formats of its events, then tables that
 * may be empty. Words are in the byte order of the machine, as the header says.
 */
#define FORMAT_MAX (1u << 20)

static void add_u32(struct strbuf *out, uint32_t v)
{
	strbuf_add(out, &v, sizeof(v));
}

static void add_u64(struct strbuf *out, uint64_t v)
{
	strbuf_add(out, &v, sizeof(v));
}

/* u64 size and the contents of a file; size 0 where it cannot be read. */
static bool add_file(struct strbuf *out, int folder, const char *path)
{
	struct strbuf text = {0};
	char chunk[4096];
	ssize_t n = 0;
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);

	/* Files of tracefs have no size: what can be read, counts. */
	while (fd >= 0 && text.len < FORMAT_MAX && (n = io_read_full(fd, chunk, sizeof(chunk))) > 0)
		strbuf_add(&text, chunk, (size_t)n);
	if (fd >= 0)
		close(fd);
	add_u64(out, text.len);
	strbuf_add(out, strbuf_text(&text), text.len);
	strbuf_fini(&text);
	return fd >= 0 && n >= 0;
}

static void add_header(struct strbuf *out, int events)
{
	static const char magic[] = {23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g'};

	strbuf_add(out, magic, sizeof(magic));
	strbuf_add(out, "0.6", sizeof("0.6"));
	strbuf_u8(out, __BYTE_ORDER == __BIG_ENDIAN);
	strbuf_u8(out, sizeof(long));
	add_u32(out, (uint32_t)sysconf(_SC_PAGESIZE));
	strbuf_add(out, "header_page", sizeof("header_page"));
	add_file(out, events, "header_page");
	strbuf_add(out, "header_event", sizeof("header_event"));
	add_file(out, events, "header_event");
}

/* "sched:sched_switch:u" -> "sched" and "sched_switch"; false for what is no tracepoint. */
static bool split(const struct event_spec *spec, char *system, char *name, size_t size)
{
	size_t first = strcspn(spec->name, ":");
	const char *rest = spec->name + first + (spec->name[first] == ':');
	size_t second = strcspn(rest, ":");

	if (spec->attr.type != PERF_TYPE_TRACEPOINT || first >= size || second >= size)
		return false;
	snprintf(system, size, "%.*s", (int)first, spec->name);
	snprintf(name, size, "%.*s", (int)second, rest);
	return true;
}

static bool of_system(const struct event_list *list, size_t at, const char *wanted, char *path,
		      size_t size)
{
	char system[NAME_MAX], name[NAME_MAX];

	if (!split(&list->items[at], system, name, sizeof(name)) || strcmp(system, wanted) != 0)
		return false;
	for (size_t i = 0; i < at; i++)
		if (list->items[i].attr.type == PERF_TYPE_TRACEPOINT &&
		    list->items[i].attr.config == list->items[at].attr.config)
			return false; /* the same one again */
	snprintf(path, size, "%s/%s/format", system, name);
	return true;
}

/* Count and formats of the events of one system. */
static bool add_system(struct strbuf *out, int events, const struct event_list *list,
		       const char *system)
{
	char path[2 * NAME_MAX + 16];
	uint32_t count = 0;
	bool all = true;

	for (size_t i = 0; i < list->len; i++)
		count += of_system(list, i, system, path, sizeof(path));
	add_u32(out, count);
	for (size_t i = 0; i < list->len; i++)
		if (of_system(list, i, system, path, sizeof(path)))
			all &= add_file(out, events, path);
	return all;
}

/* Is this the first event of its system? (ftrace's own have a place of their own.) */
static bool first_of_system(const struct event_list *list, size_t at, char *system, size_t size)
{
	char other[NAME_MAX], name[NAME_MAX];

	if (!split(&list->items[at], system, name, size) || strcmp(system, "ftrace") == 0)
		return false;
	for (size_t i = 0; i < at; i++)
		if (split(&list->items[i], other, name, sizeof(name)) && !strcmp(other, system))
			return false;
	return true;
}

int event_tracing_data(const struct event_list *list, struct strbuf *out, struct err *err)
{
	char system[NAME_MAX];
	uint32_t systems = 0;
	bool any = false, all;
	int events;

	for (size_t i = 0; i < list->len; i++) {
		any |= list->items[i].attr.type == PERF_TYPE_TRACEPOINT;
		systems += first_of_system(list, i, system, sizeof(system));
	}
	if (!any)
		return 0;
	events = event_tracepoint_folder(&event_system_host);
	if (events < 0)
		return err_sys(err, -events, "cannot read the formats of tracepoints");
	add_header(out, events);
	all = add_system(out, events, list, "ftrace");
	add_u32(out, systems);
	for (size_t i = 0; i < list->len; i++) {
		if (!first_of_system(list, i, system, sizeof(system)))
			continue;
		strbuf_add(out, system, strlen(system) + 1);
		all &= add_system(out, events, list, system);
	}
	close(events);
	add_u32(out, 0); /* kallsyms, printk formats: none */
	add_u32(out, 0);
	add_u64(out, 0); /* saved command lines */
	if (strbuf_failed(out))
		return err_nomem(err);
	return all ? 0 : err_set(err, ERR_SYSTEM, "cannot read the formats of tracepoints");
}
