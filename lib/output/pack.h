#ifndef PYPERF_OUTPUT_PACK_H
#define PYPERF_OUTPUT_PACK_H

#include "base/err.h"
#include "base/strbuf.h"

/* Appends the bytes as gzip, in base64: text that a page may carry anywhere. */
int pack_base64(struct strbuf *out, const struct strbuf *bytes, struct err *err);

#endif
