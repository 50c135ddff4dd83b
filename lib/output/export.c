#include "output/output.h"

#include <string.h>

const struct export_format export_formats[] = {
	{"folded", "collapsed stacks, one line each: for flame graphs", output_folded},
	{0},
};

const struct export_format *export_format_find(const char *name)
{
	for (const struct export_format *f = export_formats; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}
