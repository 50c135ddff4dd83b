/*
 * Where the symbols of a stripped file are: in a debug file that was split from it, found by its
 * build-id or by the name that the file itself gives (.gnu_debuglink), or, of functions alone,
 * packed within the file (.gnu_debugdata, "mini debug info").
 *
 * A debug file counts only when it is proven to be of this build: by its build-id or, where one of
 * both has none, by the checksum that the link carries.
 */
#include "symbol/elf.h"

#include "base/bytes.h"
#include "base/strbuf.h"
#include "symbol/elf_file.h"

#include <dlfcn.h>
#include <gelf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HAVE_LZMA
#include <lzma.h>
#endif

#define DEBUG_ROOT "/usr/lib/debug"

#ifdef HAVE_LZMA
#define DEBUG_BYTES_MAX (1u << 30) /* of a file whose checksum is taken */
#define MINI_BYTES_MAX (64u << 20) /* unpacked symbols */
#define MINI_MEMORY_MAX (128u << 20)

/* The checksum of .gnu_debuglink is that of xz's own format: CRC-32 of IEEE 802.3. */
static bool has_checksum(const struct elf_file *debug, uint32_t wanted)
{
	return debug->len <= DEBUG_BYTES_MAX && lzma_crc32(debug->bytes, debug->len, 0) == wanted;
}

/* Unpacks one xz stream; NULL where it is none, is cut, or is too large. */
static struct elf_file *unpack(const void *packed, size_t len)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	struct elf_file *elf = NULL;
	struct strbuf out = {0};
	uint8_t chunk[1 << 16];
	lzma_ret ret = lzma_stream_decoder(&stream, MINI_MEMORY_MAX, 0);

	stream.next_in = packed;
	stream.avail_in = len;
	while (ret == LZMA_OK && out.len <= MINI_BYTES_MAX) {
		stream.next_out = chunk;
		stream.avail_out = sizeof(chunk);
		ret = lzma_code(&stream, LZMA_FINISH);
		strbuf_add(&out, chunk, sizeof(chunk) - stream.avail_out);
	}
	lzma_end(&stream);
	if (ret == LZMA_STREAM_END && !strbuf_failed(&out))
		elf_open_memory(&elf, strbuf_text(&out), out.len, NULL);
	strbuf_fini(&out);
	return elf;
}
#else
static bool has_checksum(const struct elf_file *debug, uint32_t wanted)
{
	return false;
}

static struct elf_file *unpack(const void *packed, size_t len)
{
	return NULL;
}
#endif

static bool same_build(const struct elf_file *a, const struct elf_file *b)
{
	return a->build_id_len && a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, a->build_id_len);
}

/* Opens a candidate; NULL where it is not of this build. `checksum` may be NULL. */
static struct elf_file *open_candidate(const struct elf_file *elf, const char *path,
				       const uint32_t *checksum)
{
	struct elf_file *debug;

	if (elf_open(&debug, path, NULL) < 0)
		return NULL;
	debug->debug_tried = debug->mini_tried = true;
	if (debug->machine == elf->machine &&
	    (same_build(elf, debug) || (checksum && (!elf->build_id_len || !debug->build_id_len) &&
					has_checksum(debug, *checksum))))
		return debug;
	elf_close(debug);
	return NULL;
}

void elf_build_id_text(const struct elf_file *elf, struct strbuf *out)
{
	for (size_t i = 0; i < elf->build_id_len; i++)
		strbuf_printf(out, "%02x", elf->build_id[i]);
}

static struct elf_file *by_build_id(const struct elf_file *elf)
{
	struct strbuf id = {0}, path = {0};
	struct elf_file *debug = NULL;

	elf_build_id_text(elf, &id);
	if (id.len > 2) {
		strbuf_printf(&path, DEBUG_ROOT "/.build-id/%.2s/%s.debug", id.buf, id.buf + 2);
		if (!strbuf_failed(&path))
			debug = open_candidate(elf, strbuf_text(&path), NULL);
	}
	strbuf_fini(&id);
	strbuf_fini(&path);
	return debug;
}

/* .gnu_debuglink: a file name, padded to 4 bytes, and the checksum. */
static const char *read_link(const struct elf_file *elf, uint32_t *checksum)
{
	size_t len;
	const void *section = elf_section_bytes(elf, ".gnu_debuglink", &len);
	struct bytes link;
	const char *name;

	if (!section)
		return NULL;
	link = bytes_of(section, len);
	link.swap = elf->swap;
	name = bytes_cstr(&link);
	if (!name || !*name || strchr(name, '/'))
		return NULL;
	bytes_take(&link, -(strlen(name) + 1) & 3);
	*checksum = bytes_u32(&link);
	return link.bad ? NULL : name;
}

/* Beside the file, in .debug beside it, and below the root of debug files, as gdb looks. */
static struct elf_file *by_link(const struct elf_file *elf)
{
	static const char *const places[][2] = {{"", "/"}, {"", "/.debug/"}, {DEBUG_ROOT, "/"}};
	char folder[PATH_MAX], *slash;
	struct elf_file *debug = NULL;
	struct strbuf path = {0};
	uint32_t checksum;
	const char *name = read_link(elf, &checksum);

	/* By its true name: it may have been opened through a link. */
	if (!name || !elf->path || !realpath(elf->path, folder) || !(slash = strrchr(folder, '/')))
		return NULL;
	*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !debug; i++) {
		strbuf_reset(&path);
		strbuf_printf(&path, "%s%s%s%s", places[i][0], folder, places[i][1], name);
		if (!strbuf_failed(&path))
			debug = open_candidate(elf, strbuf_text(&path), &checksum);
	}
	strbuf_fini(&path);
	return debug;
}

struct elf_file *elf_debug_file(struct elf_file *elf)
{
	if (elf->debug_tried)
		return elf->debug;
	elf->debug_tried = true;
	elf->debug = by_build_id(elf);
	if (!elf->debug)
		elf->debug = by_link(elf);
	return elf->debug;
}

struct elf_file *elf_mini_file(struct elf_file *elf)
{
	const void *packed;
	size_t len;

	if (elf->mini_tried)
		return elf->mini;
	elf->mini_tried = true;
	packed = elf_section_bytes(elf, ".gnu_debugdata", &len);
	if (packed)
		elf->mini = unpack(packed, len);
	if (elf->mini)
		elf->mini->debug_tried = elf->mini->mini_tried = true;
	return elf->mini;
}

/*
 * debuginfod: debug files from servers, by build-id. The library is loaded when it is first needed,
 * as libdw does it: it brings an HTTP client, which would make every start slower, and a machine
 * without it needs none.
 */
bool elf_fetch_debug_file(struct elf_file *elf)
{
	const char *urls = secure_getenv("DEBUGINFOD_URLS");
	void *library, *(*begin)(void);
	void (*end)(void *client);
	int (*find)(void *client, const unsigned char *id, int len, char **path);
	char *path = NULL;
	void *client;
	int fd;

	if (elf_debug_file(elf) || !elf->build_id_len || !urls || !urls[strspn(urls, " ")])
		return elf->debug != NULL;
	library = dlopen("libdebuginfod.so.1", RTLD_LAZY);
	if (!library)
		return false;
	/* It stays loaded: libcurl does not survive being closed and opened again. */
	*(void **)&begin = dlsym(library, "debuginfod_begin");
	*(void **)&end = dlsym(library, "debuginfod_end");
	*(void **)&find = dlsym(library, "debuginfod_find_debuginfo");
	client = begin && end && find ? begin() : NULL;
	if (!client)
		return false;
	fd = find(client, elf->build_id, (int)elf->build_id_len, &path);
	if (fd >= 0) {
		close(fd);
		elf->debug = open_candidate(elf, path, NULL);
	}
	free(path);
	end(client);
	return elf->debug != NULL;
}
