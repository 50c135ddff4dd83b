#include "screen/internal.h"

#include "base/text.h"

#include <string.h>
#include <wchar.h>

/* A line that is typed, in UTF-8; the cursor is between characters. */

void prompt_open(struct screen *screen, const char *question, const char *initial,
		 int (*done)(struct screen *screen, void *self, const char *text, struct err *err),
		 void *self)
{
	struct prompt *prompt = &screen->prompt;

	strbuf_reset(&prompt->text);
	strbuf_str(&prompt->text, initial);
	prompt->cursor = prompt->text.len;
	prompt->question = question;
	prompt->done = done;
	prompt->self = self;
}

void prompt_close(struct prompt *prompt)
{
	prompt->question = NULL;
}

static bool continues(const struct prompt *prompt, size_t at)
{
	return at < prompt->text.len && ((unsigned char)prompt->text.buf[at] & 0xc0) == 0x80;
}

static size_t before(const struct prompt *prompt, size_t at)
{
	at -= at > 0;
	while (at && continues(prompt, at))
		at--;
	return at;
}

static size_t behind(const struct prompt *prompt, size_t at)
{
	at += at < prompt->text.len;
	while (continues(prompt, at))
		at++;
	return at;
}

static void cut(struct prompt *prompt, size_t from, size_t to)
{
	struct strbuf *text = &prompt->text;

	if (from >= to)
		return;
	memmove(text->buf + from, text->buf + to, text->len - to + 1);
	text->len -= to - from;
	prompt->cursor = from;
}

static void insert(struct prompt *prompt, int code)
{
	const wchar_t character = (wchar_t)code;
	struct strbuf tail = {0};
	char bytes[16];
	mbstate_t state = {0};
	size_t len = wcrtomb(bytes, character, &state);

	if (len == (size_t)-1)
		return;
	strbuf_str(&tail, strbuf_text(&prompt->text) + prompt->cursor);
	prompt->text.len = prompt->cursor;
	strbuf_add(&prompt->text, bytes, len);
	strbuf_add(&prompt->text, strbuf_text(&tail), tail.len);
	prompt->cursor += len;
	strbuf_fini(&tail);
}

static int finish(struct screen *screen, struct err *err)
{
	struct prompt *prompt = &screen->prompt;
	char *text = strdup(strbuf_text(&prompt->text));
	int rc;

	prompt_close(prompt);
	if (!text)
		return err_nomem(err);
	rc = prompt->done(screen, prompt->self, text, err);
	free(text);
	return rc;
}

int prompt_key(struct screen *screen, int code, struct err *err)
{
	struct prompt *prompt = &screen->prompt;
	size_t len = prompt->text.len, at = prompt->cursor;

	switch (code) {
	case SCREEN_ENTER:
		return finish(screen, err);
	case SCREEN_ESC:
		prompt_close(prompt);
		break;
	case SCREEN_BACKSPACE:
		/* As in less: beyond the first character it leaves. */
		if (!len)
			prompt_close(prompt);
		cut(prompt, before(prompt, at), at);
		break;
	case SCREEN_DELETE:
		cut(prompt, at, behind(prompt, at));
		break;
	case SCREEN_LEFT:
		prompt->cursor = before(prompt, at);
		break;
	case SCREEN_RIGHT:
		prompt->cursor = behind(prompt, at);
		break;
	case SCREEN_HOME:
	case SCREEN_CTRL('a'):
		prompt->cursor = 0;
		break;
	case SCREEN_END:
	case SCREEN_CTRL('e'):
		prompt->cursor = len;
		break;
	case SCREEN_CTRL('u'):
		cut(prompt, 0, at);
		break;
	default:
		if (code >= ' ' && code < SCREEN_UP)
			insert(prompt, code);
	}
	return 0;
}
