#include "output/page.h"

#include "output/pack.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/random.h>

/*
 * The page is one file without a reference to another. What is data lies in an element that no
 * browser runs, in base64, and becomes text only; the policy lets nothing run or load but the two
 * elements that carry this page's nonce.
 */

/* Files of page/ as they are: the assembler brings them in. Those of one name are joined. */
#define EMBED(name, ...)                                                             \
	extern const char page_##name[], page_##name##_end[];                        \
	__asm__(".pushsection .rodata\n.global page_" #name ", page_" #name "_end\n" \
		"page_" #name ":\n" __VA_ARGS__ "page_" #name "_end:\n.popsection\n")
#define FILE_OF_PAGE(path) ".incbin \"lib/output/page/" path "\"\n"

EMBED(body, FILE_OF_PAGE("body.html"));
EMBED(style, FILE_OF_PAGE("style.css"));
EMBED(script,
      FILE_OF_PAGE("data.js") FILE_OF_PAGE("model.js") FILE_OF_PAGE("dom.js")
	      FILE_OF_PAGE("colour.js") FILE_OF_PAGE("flame.js") FILE_OF_PAGE("timeline.js")
		      FILE_OF_PAGE("tables.js") FILE_OF_PAGE("source.js") FILE_OF_PAGE("main.js"));

static void put(FILE *out, const char *from, const char *end)
{
	fwrite(from, 1, (size_t)(end - from), out);
}

int output_page(FILE *out, const struct page *page, struct err *err)
{
	struct strbuf data = {0}, packed = {0};
	uint64_t nonce[2];
	int rc = page_put_data(&data, page, err);

	if (!rc)
		rc = pack_base64(&packed, &data, err);
	if (!rc && getrandom(nonce, sizeof(nonce), 0) != sizeof(nonce))
		rc = err_sys(err, errno, "cannot get random numbers");
	if (!rc) {
		char word[40];

		snprintf(word, sizeof(word), "%016" PRIx64 "%016" PRIx64, nonce[0], nonce[1]);
		fprintf(out,
			"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
			"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
			"'none'; "
			"script-src 'nonce-%s'; style-src 'nonce-%s'; base-uri 'none'; "
			"form-action 'none'\">\n"
			"<meta name=\"viewport\" content=\"width=device-width\">\n"
			"<meta name=\"color-scheme\" content=\"light dark\">\n"
			"<title>pyperf</title>\n<style nonce=\"%s\">\n",
			word, word, word);
		put(out, page_style, page_style_end);
		fputs("</style>\n</head>\n<body>\n", out);
		put(out, page_body, page_body_end);
		fputs("<script type=\"application/octet-stream\" id=\"data\">", out);
		fwrite(packed.buf, 1, packed.len, out);
		fprintf(out, "</script>\n<script nonce=\"%s\">\n\"use strict\";\n", word);
		put(out, page_script, page_script_end);
		fputs("</script>\n</body>\n</html>\n", out);
	}
	strbuf_fini(&data);
	strbuf_fini(&packed);
	return rc;
}
