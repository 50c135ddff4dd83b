#include "output/texts.h"

#include <stdlib.h>

int texts_init(struct texts *texts, size_t count, texts_write *write, const void *ctx,
	       struct err *err)
{
	*texts = (struct texts){.starts = calloc(count + 1, sizeof(*texts->starts))};
	if (!texts->starts)
		return err_nomem(err);
	strbuf_str(&texts->text, "");
	for (size_t i = 0; i < count; i++) {
		write(&texts->text, (uint32_t)i, ctx);
		texts->starts[i + 1] = texts->text.len;
	}
	return strbuf_failed(&texts->text) ? err_nomem(err) : 0;
}

void texts_fini(struct texts *texts)
{
	strbuf_fini(&texts->text);
	free(texts->starts);
	texts->starts = NULL;
}
