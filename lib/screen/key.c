#include "screen/key.h"

static const struct {
	int code;
	const char *name;
} names[] = {
	{SCREEN_TAB, "Tab"},
	{SCREEN_ENTER, "Enter"},
	{SCREEN_ESC, "Esc"},
	{' ', "Space"},
	{SCREEN_UP, "Up"},
	{SCREEN_DOWN, "Down"},
	{SCREEN_LEFT, "Left"},
	{SCREEN_RIGHT, "Right"},
	{SCREEN_PAGE_UP, "PgUp"},
	{SCREEN_PAGE_DOWN, "PgDn"},
	{SCREEN_HOME, "Home"},
	{SCREEN_END, "End"},
	{SCREEN_BACKSPACE, "Backspace"},
	{SCREEN_DELETE, "Del"},
	{SCREEN_BACKTAB, "Shift-Tab"},
	{SCREEN_F1, "F1"},
};

const struct screen_key *screen_key_find(const struct screen_key *keys, int code)
{
	for (; keys && keys->codes[0]; keys++)
		for (size_t i = 0; i < SCREEN_KEY_CODES; i++)
			if (keys->codes[i] == code)
				return keys;
	return NULL;
}

void screen_key_name(int code, struct strbuf *out)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].code == code) {
			strbuf_str(out, names[i].name);
			return;
		}
	}
	if (code < ' ')
		strbuf_printf(out, "^%c", code | 0x40);
	else
		strbuf_char(out, (char)code);
}

void screen_key_names(const struct screen_key *key, size_t most, struct strbuf *out)
{
	for (size_t i = 0; i < SCREEN_KEY_CODES && i < most && key->codes[i]; i++) {
		strbuf_str(out, i ? ", " : "");
		screen_key_name(key->codes[i], out);
	}
}
