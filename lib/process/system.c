#include "process/system.h"

#include "base/io.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lines of /proc/kallsyms to look at: the first few may stand at address 0 (per-CPU symbols). */
#define KALLSYMS_LINES 100000
#define NAMES_MAX 4096

static const char *join(char buf[PATH_MAX], const char *root, const char *path)
{
	snprintf(buf, PATH_MAX, "%s%s", root, path);
	return buf;
}

/* The whole text is one number; blanks around it are allowed. */
static bool parse_number(const char *text, long long *value)
{
	char *end;

	errno = 0;
	*value = strtoll(text, &end, 10);
	if (end == text || errno)
		return false;
	end += strspn(end, " \t");
	return !*end;
}

int system_number(const char *root, const char *path, long long *value, struct err *err)
{
	char full[PATH_MAX], line[64];
	int ret = io_read_line(join(full, root, path), line, sizeof(line), err);

	if (ret < 0)
		return ret;
	if (!parse_number(line, value))
		return err_set(err, ERR_CORRUPT, "%s does not hold a number", full);
	return 0;
}

int system_kernel_addresses(const char *root, struct err *err)
{
	char full[PATH_MAX], line[512];
	FILE *file = fopen(join(full, root, "/proc/kallsyms"), "re");
	bool any = false, shown = false;

	if (!file)
		return err_sys(err, errno, "cannot open %s", full);
	for (int i = 0; i < KALLSYMS_LINES && !shown && fgets(line, sizeof(line), file); i++) {
		unsigned long long address;
		char blank;

		if (sscanf(line, "%llx %*c%c%*s", &address, &blank) != 2 || blank != ' ')
			continue;
		any = true;
		shown = address != 0;
	}
	fclose(file);
	if (!any)
		return err_set(err, ERR_CORRUPT, "%s lists no symbols", full);
	return shown;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int system_list(const char *root, const char *path, struct strbuf *out, struct err *err)
{
	struct {
		VEC_OF(char *)
	} names = {0};
	char full[PATH_MAX];
	DIR *folder = opendir(join(full, root, path));
	struct dirent *entry;
	int ret = 0;

	if (!folder)
		return err_sys(err, errno, "cannot read %s", full);
	while (!ret && names.len < NAMES_MAX && (entry = readdir(folder))) {
		char **slot;

		if (entry->d_name[0] == '.')
			continue;
		slot = vec_push(&names);
		if (slot)
			*slot = strdup(entry->d_name);
		if (!slot || !*slot)
			ret = err_nomem(err);
	}
	closedir(folder);
	if (!ret) {
		ret = (int)names.len;
		if (names.len)
			qsort(names.items, names.len, sizeof(*names.items), by_name);
		for (size_t i = 0; i < names.len; i++)
			strbuf_printf(out, "%s%s", i ? " " : "", names.items[i]);
	}
	for (size_t i = 0; i < names.len; i++)
		free(names.items[i]);
	vec_fini(&names);
	return ret;
}
