#include "output/json_text.h"

#include "base/json_value.h"

#include <jansson.h>
#include <string.h>

static int take(const char *bytes, size_t len, void *ctx)
{
	strbuf_add(ctx, bytes, len);
	return 0;
}

void json_add_text(struct strbuf *out, const char *text)
{
	json_t *value = json_of_text(text);

	if (!value || json_dump_callback(value, take, out, JSON_ENCODE_ANY))
		out->failed = 1;
	json_decref(value);
}

void json_add_u64(struct strbuf *out, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	strbuf_add(out, digits + at, sizeof(digits) - at);
}

void json_add_scaled(struct strbuf *out, int64_t value, unsigned int decimals)
{
	uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value, scale = 1;
	char digits[20];

	for (unsigned int i = 0; i < decimals; i++)
		scale *= 10;
	if (value < 0)
		strbuf_char(out, '-');
	json_add_u64(out, left / scale);
	left %= scale;
	if (!left)
		return;
	digits[0] = '.';
	for (unsigned int i = decimals; i; i--, left /= 10)
		digits[i] = (char)('0' + left % 10);
	strbuf_add(out, digits, decimals + 1);
}
