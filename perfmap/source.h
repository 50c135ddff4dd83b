#ifndef PYPERF_SOURCE_H
#define PYPERF_SOURCE_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The text of the Python sources that were hit, as of the recording, so that a report needs
 * neither the files nor the machine.
 */

#define SOURCE_BYTES_MAX (8u << 20) /* a larger file is left out */

struct sources;

struct sources *sources_new(void);
void sources_free(struct sources *sources);

/* Reads a file once; names such as "<string>" and "<frozen os>" are not files and are skipped. A
 * relative name is looked up in `cwd`; `root` is put in front ("" or what roots_path() says). The
 * text is decoded by its PEP 263 cookie or BOM to UTF-8. 1 when stored, 0 when there is none,
 * negative on failure. */
int sources_read(struct sources *sources, const char *filename, const char *root, const char *cwd,
		 struct err *err);
/* Takes the text of `path`, a file of `owner`, for a name that is none, such as a notebook's cell;
 * one that is known already keeps its text. 1 when stored, 0 when it was, negative on failure. */
int sources_read_as(struct sources *sources, const char *filename, const char *path, uid_t owner,
		    struct err *err);
int sources_encode(const struct sources *sources, struct strbuf *out);
int sources_decode(struct sources *sources, struct bytes section, struct err *err);

struct source {
	const char *filename; /* as co_filename has it */
	const char *path;     /* that was read; "": in another tree of files, which is gone */
	const char *text;     /* UTF-8 */
	size_t len;
	int64_t mtime_ns;
	uint64_t hash; /* XXH3 of the file's bytes */
};
/* NULL where there is none. Valid until sources_free(). */
const struct source *sources_find(const struct sources *sources, const char *filename);
/* Does the file on disk now differ from what was recorded? -1: it is not there. */
int source_changed(const struct source *source);
/* Line `number` (from 1) without its newline; NULL beyond the end. */
const char *source_line(const struct source *source, uint32_t number, size_t *len);
uint32_t source_line_count(const struct source *source);

#endif
