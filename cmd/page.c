#include "cmd/page.h"

#include "output/output.h"
#include "output/samples.h"

#include <stdlib.h>

struct page_input {
	struct opened opened;
	struct samples *samples; /* when each was taken, which a profile forgets */
};

int page_read(struct page_input **out, struct err *err)
{
	struct page_input *input = calloc(1, sizeof(*input));
	/* As in report: a ranking is of what can be changed one by one. */
	struct profile_options options = {.no_inline = true, .on_sample = samples_keep};
	int rc;

	*out = NULL;
	if (input)
		input->samples = samples_new();
	if (!input || !input->samples) {
		free(input);
		return err_nomem(err);
	}
	options.ctx = input->samples;
	rc = view_open(&input->opened, &options, err);
	if (rc) {
		samples_free(input->samples);
		free(input);
		return rc;
	}
	*out = input;
	return 0;
}

void page_free(struct page_input *input)
{
	if (!input)
		return;
	view_close(&input->opened);
	samples_free(input->samples);
	free(input);
}

int page_write(const struct page_input *input, FILE *out, struct err *err)
{
	const struct page page = {
		.profile = input->opened.profile,
		.samples = input->samples,
		.filter = &input->opened.filter,
		.filter_text = input->opened.filter_text,
		.event = input->opened.event,
		.reduced = view_given.reduced,
	};

	return output_page(out, &page, err);
}
