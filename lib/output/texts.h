#ifndef PYPERF_TEXTS_H
#define PYPERF_TEXTS_H

#include "base/err.h"
#include "base/strbuf.h"

#include <stdint.h>

/* A text for each of many ids, written once in a format's own spelling and used in every row. */
struct texts {
	struct strbuf text;
	size_t *starts; /* count + 1 of them */
};

typedef void texts_write(struct strbuf *out, uint32_t id, const void *ctx);

int texts_init(struct texts *texts, size_t count, texts_write *write, const void *ctx,
	       struct err *err);
void texts_fini(struct texts *texts);

static inline void texts_add(struct strbuf *out, const struct texts *texts, uint32_t id)
{
	strbuf_add(out, texts->text.buf + texts->starts[id],
		   texts->starts[id + 1] - texts->starts[id]);
}

#endif
