#include "profile/origin.h"

#include "base/strbuf.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *title;
} origins[CODE_ORIGINS] = {
	[CODE_OWN] = {"own", "own code"},
	[CODE_PACKAGES] = {"packages", "packages"},
	[CODE_STDLIB] = {"stdlib", "Python and its library"},
	[CODE_SYSTEM] = {"system", "system libraries"},
	[CODE_KERNEL] = {"kernel", "kernel"},
	[CODE_UNKNOWN] = {"unknown", "unknown"},
};

const char *code_origin_name(enum code_origin origin)
{
	return origins[origin].name;
}

const char *code_origin_title(enum code_origin origin)
{
	return origins[origin].title;
}

/* Folders in which packages are installed; those of pex lie in one for each wheel. */
static const char *const package_folders[] = {"site-packages", "dist-packages", "installed_wheels",
					      NULL};
/* What the system, not the user, puts there. */
static const char *const system_folders[] = {"/usr/",	    "/lib/", "/lib32/", "/lib64/",
					     "/opt/",	    "/bin/", "/sbin/",	"/nix/store/",
					     "/gnu/store/", NULL};
/* The interpreter, as a file of its own. */
static const char *const runtimes[] = {"libpython", "python2", "python3", "libpypy", NULL};

static bool is_component(const char *at, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(at, name, len) == 0;
}

/* "3", "3.11", "3.13t", "311.zip"; nothing else. */
static bool is_version(const char *at, size_t len)
{
	size_t i = 0;

	while (i < len && (isdigit((unsigned char)at[i]) || at[i] == '.'))
		i++;
	if (i < len && at[i] == 't')
		i++;
	return i && isdigit((unsigned char)at[0]) &&
	       (i == len || is_component(at + i, len - i, "zip"));
}

/* Is the component Python's own folder of a lib folder: "python3.11", "python311.zip", "pypy3.9"?
 */
static bool is_library(const char *at, size_t len, const char *before, size_t before_len)
{
	static const char *const prefixes[] = {"python", "pypy", NULL};

	if (before_len < 3 || memcmp(before, "lib", 3) != 0 ||
	    3 + strspn(before + 3, "0123456789") != before_len)
		return false;
	for (const char *const *p = prefixes; *p; p++) {
		size_t n = strlen(*p);

		if (len > n && memcmp(at, *p, n) == 0 && is_version(at + n, len - n))
			return true;
	}
	return false;
}

/* Where modules begin in a path. */
struct root {
	enum code_origin origin;
	const char *rest; /* behind the folder that modules are looked for in */
};

/* The innermost folder decides: packages lie below Python's library. */
static struct root find_root(const char *path)
{
	struct root root = {CODE_OWN, path};
	const char *before = "";
	size_t before_len = 0;

	for (const char *at = path, *end; (end = strchr(at, '/')); at = end + 1) {
		size_t len = (size_t)(end - at);

		for (const char *const *name = package_folders; *name; name++)
			if (is_component(at, len, *name))
				root = (struct root){CODE_PACKAGES, end + 1};
		if (is_library(at, len, before, before_len))
			root = (struct root){CODE_STDLIB, end + 1};
		/* Extensions of the library have a folder of their own. */
		if (root.origin == CODE_STDLIB && is_component(at, len, "lib-dynload"))
			root.rest = end + 1;
		before = at;
		before_len = len;
	}
	return root;
}

static bool begins_with(const char *text, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		if (strncmp(text, *prefixes, strlen(*prefixes)) == 0)
			return true;
	return false;
}

static enum code_origin origin_of_object(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (begins_with(slash ? slash + 1 : path, runtimes))
		return CODE_STDLIB;
	/* "[vdso]", "[heap]", what has no file */
	return path[0] != '/' || begins_with(path, system_folders) ? CODE_SYSTEM : CODE_OWN;
}

enum code_origin code_origin_of_path(enum frame_kind kind, const char *path)
{
	struct root root;

	if (kind == FRAME_KERNEL)
		return CODE_KERNEL;
	if (!path[0])
		return CODE_UNKNOWN;
	if (strncmp(path, "<frozen ", strlen("<frozen ")) == 0)
		return CODE_STDLIB;
	root = find_root(path);
	return root.origin == CODE_OWN && kind == FRAME_NATIVE ? origin_of_object(path)
							       : root.origin;
}

enum code_origin code_origin(const struct profile *profile, uint32_t function)
{
	const struct profile_function *f = profile_function(profile, function);

	return code_origin_of_path(f->kind, profile_text(profile, f->file));
}

/* "numpy/linalg/__init__.py" -> "numpy.linalg", "<frozen zipimport>" -> "zipimport". What is behind
 * the first point of a file's name says what kind of file it is. */
static void add_module(struct strbuf *out, const char *path)
{
	static const char frozen[] = "<frozen ";
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
	size_t len = (size_t)(file - path) + strcspn(file, ".");

	if (strncmp(path, frozen, strlen(frozen)) == 0) {
		path += strlen(frozen);
		len = strcspn(path, ">");
	} else if (slash && strncmp(file, "__init__.", strlen("__init__.")) == 0) {
		len = (size_t)(slash - path);
	}
	for (size_t i = 0; i < len; i++)
		strbuf_char(out, path[i] == '/' ? '.' : path[i]);
}

/* The pattern itself, or something below it. */
static bool matches(const char *module, const char *pattern, const char *below)
{
	return fnmatch(pattern, module, 0) == 0 || fnmatch(below, module, 0) == 0;
}

bool code_in_module(const char *path, const char *pattern)
{
	struct root root = find_root(path);
	struct strbuf module = {0}, below = {0};
	bool found = false;

	add_module(&module, root.rest);
	strbuf_printf(&below, "%s.*", pattern);
	for (const char *at = strbuf_text(&module); *at && !found; at += strcspn(at, ".")) {
		at += strspn(at, ".");
		found = matches(at, pattern, strbuf_text(&below));
		if (root.origin != CODE_OWN)
			break;
	}
	strbuf_fini(&module);
	strbuf_fini(&below);
	return found;
}
