#include "symbol/demangle.h"

#ifdef HAVE_DEMANGLE

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

/*
 * By libiberty, which knows all schemes. A name can be made so that its plain form is exponentially
 * long; the library hands its text out in pieces, and the only way to end it early is to jump out
 * of the piece that is too much. It keeps its state on the stack, save for identifiers in Punycode,
 * of which one is then lost.
 */
#define MANGLED_MAX 8192
#define PLAIN_MAX 16384

struct output {
	struct strbuf *out;
	size_t start; /* of the name in it */
	jmp_buf too_long;
};

static void add_piece(const char *piece, size_t len, void *ctx)
{
	struct output *output = ctx;

	if (output->out->len + len > output->start + PLAIN_MAX)
		longjmp(output->too_long, 1);
	strbuf_add(output->out, piece, len);
}

/* Where the mangled name ends: "@plt", "@@GLIBCXX_3.4". */
static size_t mangled_length(const char *name)
{
	return strcspn(name, "@");
}

/* The older scheme of Rust looks like C++ and is asked first; it is the stricter. */
static bool run(const char *mangled, struct output *output)
{
	if (setjmp(output->too_long))
		return false;
	if (rust_demangle_callback(mangled, 0, add_piece, output))
		return true;
	output->out->len = output->start;
	return mangled[1] == 'Z' && cplus_demangle_v3_callback(mangled, 0, add_piece, output);
}

bool demangle(const char *name, struct strbuf *out)
{
	struct output output = {.out = out, .start = out->len};
	size_t len = mangled_length(name);
	char mangled[MANGLED_MAX];

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') || len >= sizeof(mangled))
		return false;
	memcpy(mangled, name, len);
	mangled[len] = '\0';
	if (run(mangled, &output)) {
		strbuf_str(out, name + len);
		return !strbuf_failed(out);
	}
	out->len = output.start;
	if (out->buf)
		out->buf[out->len] = '\0';
	return false;
}

#else

bool demangle(const char *name, struct strbuf *out)
{
	return false;
}

#endif
