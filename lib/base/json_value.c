#include "base/json_value.h"

#include "base/text.h"

#include <jansson.h>
#include <string.h>

json_t *json_of_text(const char *text)
{
	struct strbuf utf8 = {0};
	json_t *value = NULL;

	if (!text)
		return json_null();
	text_repair(&utf8, text, strlen(text));
	if (!strbuf_failed(&utf8))
		value = json_stringn(strbuf_text(&utf8), utf8.len);
	strbuf_fini(&utf8);
	return value;
}
