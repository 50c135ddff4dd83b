#ifndef PYPERF_TESTS_PYTHONS_H
#define PYPERF_TESTS_PYTHONS_H

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The CPythons of this machine, for tests that ask the interpreter itself: PYTHON_LIST (blanks
 * between) where it is set, else those of pyenv and of the usual folders.
 */
static inline size_t pythons_find(char found[][256], size_t max)
{
	static const char versions[] = "/versions/3.*/bin/python3.[0-9]*";
	const char *list = getenv("PYTHON_LIST"), *pyenv = getenv("PYENV_ROOT");
	const char *home = getenv("HOME");
	char patterns[3][512] = {"", "/usr/bin/python3.[0-9]*", "/usr/local/bin/python3.[0-9]*"};
	size_t count = 0;
	glob_t paths;

	if (list) {
		for (int at = 0, used;
		     count < max && sscanf(list + at, "%255s%n", found[count], &used) == 1; count++)
			at += used;
		return count;
	}
	if (pyenv)
		snprintf(patterns[0], sizeof(patterns[0]), "%s%s", pyenv, versions);
	else
		snprintf(patterns[0], sizeof(patterns[0]), "%s/.pyenv%s", home ? home : "",
			 versions);
	for (size_t i = 0; i < 3; i++) {
		if (glob(patterns[i], 0, NULL, &paths))
			continue;
		for (size_t j = 0; j < paths.gl_pathc && count < max; j++)
			/* not python3.6m, python3.12-config */
			if (!strpbrk(strrchr(paths.gl_pathv[j], '/'), "-m") &&
			    strlen(paths.gl_pathv[j]) < sizeof(found[0]))
				strcpy(found[count++], paths.gl_pathv[j]);
		globfree(&paths);
	}
	return count;
}

#endif
