#include "perfmap/source.h"

#include "base/arena.h"
#include "base/intern.h"
#include "base/vec.h"
#include "process/safe_open.h"

#include <ctype.h>
#include <errno.h>
#include <iconv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/*
 * Sources are kept decoded, so that a report prints UTF-8 whatever the file was written in, and
 * with an index of their lines. `by_name` gives every file name that was ever asked for an id, and
 * `slots` (by that id) its source, so a file that is not there is looked for once.
 *
 * The section: u32 version, u32 count, then per source the blobs file name and path, u64 mtime_ns,
 * u64 hash and the blob text.
 */

#define SECTION_VERSION 1
#define ANYBODY ((uid_t)-1)

struct kept {
	struct source source;
	uint32_t *starts; /* offset of each line; one more is the end */
	uint32_t lines;
};

struct slot {
	struct kept *kept; /* NULL: looked for and not there */
};

struct sources {
	struct arena arena;
	struct intern by_name;
	struct {
		VEC_OF(struct slot)
	} slots;
};

struct sources *sources_new(void)
{
	struct sources *sources = calloc(1, sizeof(*sources));

	if (sources) {
		arena_init(&sources->arena);
		intern_init(&sources->by_name);
	}
	return sources;
}

void sources_free(struct sources *sources)
{
	if (!sources)
		return;
	arena_fini(&sources->arena);
	intern_fini(&sources->by_name);
	vec_fini(&sources->slots);
	free(sources);
}

/* Lines end as in Python: by \n, \r\n or \r. A form feed is white space within a line. */
static const char *line_end(const char *s, const char *end, const char **next)
{
	while (s < end && *s != '\n' && *s != '\r')
		s++;
	*next = s < end ? s + 1 : s;
	if (s + 1 < end && s[0] == '\r' && s[1] == '\n')
		*next = s + 2;
	return s;
}

/*
 * PEP 263: "coding[:=]\s*NAME" in a comment on one of the first two lines, and on the second only
 * when the first is blank or a comment.
 */
#define ENCODING_MAX 40

static bool cookie_in(const char *s, const char *end, char *name)
{
	size_t len = 0;

	for (; end - s > 7; s++) {
		if (memcmp(s, "coding", 6) == 0 && (s[6] == ':' || s[6] == '='))
			break;
	}
	if (end - s <= 7)
		return false;
	for (s += 7; s < end && (*s == ' ' || *s == '\t');)
		s++;
	for (; s < end && (isalnum((unsigned char)*s) || strchr("-_.", *s)) && *s; s++) {
		if (len == ENCODING_MAX - 1)
			return false;
		name[len++] = *s == '_' ? '-' : (char)tolower((unsigned char)*s);
	}
	name[len] = '\0';
	return len;
}

static bool find_cookie(const char *s, const char *end, char *name)
{
	for (int line = 0; line < 2 && s < end; line++) {
		const char *next, *stop = line_end(s, end, &next);

		while (s < stop && (*s == ' ' || *s == '\t' || *s == '\f'))
			s++;
		if (s < stop && *s != '#')
			return false;
		if (cookie_in(s, stop, name))
			return true;
		s = next;
	}
	return false;
}

static bool has_prefix(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(name, prefix, len) == 0 && (!name[len] || name[len] == '-');
}

/* What iconv(3) calls the encodings that Python has other names for. */
static const char *iconv_name(const char *name)
{
	static const struct {
		const char *python, *iconv;
	} prefixes[] =
		{
			{"utf-8", "UTF-8"},
			{"latin-1", "ISO-8859-1"},
			{"iso-8859-1", "ISO-8859-1"},
			{"iso-latin-1", "ISO-8859-1"},
		},
	  aliases[] = {
		  {"utf8", "UTF-8"},
		  {"utf", "UTF-8"},
		  {"u8", "UTF-8"},
		  {"cp65001", "UTF-8"},
		  {"latin", "ISO-8859-1"},
		  {"iso8859", "ISO-8859-1"},
		  {"cyrillic", "ISO-8859-5"},
		  {"mac-roman", "MACINTOSH"},
		  {"macroman", "MACINTOSH"},
		  {"mac-cyrillic", "MAC-CYRILLIC"},
		  {"sjis", "SHIFT_JIS"},
		  {"s-jis", "SHIFT_JIS"},
		  {"ujis", "EUC-JP"},
		  {"u-jis", "EUC-JP"},
		  {"ms932", "CP932"},
		  {"mbcs", "CP1252"},
	  };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (has_prefix(name, prefixes[i].python))
			return prefixes[i].iconv;
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcmp(name, aliases[i].python) == 0)
			return aliases[i].iconv;
	return name;
}

/* Appends `in` as UTF-8; what is not in the encoding becomes U+FFFD, byte by byte. */
static int convert(iconv_t cd, char *in, size_t left, struct strbuf *out)
{
	char chunk[4096];

	while (left) {
		char *to = chunk;
		size_t room = sizeof(chunk);
		size_t got = iconv(cd, &in, &left, &to, &room);
		int saved = errno;

		strbuf_add(out, chunk, sizeof(chunk) - room);
		if (got != (size_t)-1)
			break;
		if (saved == E2BIG)
			continue;
		strbuf_str(out, "\xef\xbf\xbd");
		in++;
		left--;
		iconv(cd, NULL, NULL, NULL, NULL);
	}
	return strbuf_failed(out) ? -1 : 0;
}

static size_t ascii_len(const char *text, size_t len)
{
	const uint64_t high = UINT64_C(0x8080808080808080);
	uint64_t word;
	size_t at = 0;

	for (; at + sizeof(word) <= len; at += sizeof(word)) {
		memcpy(&word, text + at, sizeof(word));
		if (word & high)
			break;
	}
	return at;
}

static int decode(char *text, size_t len, struct strbuf *out, struct err *err)
{
	char name[ENCODING_MAX] = "utf-8";
	const char *encoding;
	size_t plain;
	iconv_t cd;
	int ret;

	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3;
		len -= 3;
	} else {
		find_cookie(text, text + len, name);
	}
	encoding = iconv_name(name);
	/* Most of all text is its own decoding. */
	plain = strcmp(encoding, "UTF-8") == 0 ? ascii_len(text, len) : 0;
	strbuf_add(out, text, plain);
	text += plain;
	len -= plain;
	cd = iconv_open("UTF-8", encoding);
	if (cd == (iconv_t)-1) /* one of Python's own, or none at all: most of it is ASCII */
		cd = iconv_open("UTF-8", "UTF-8");
	if (cd == (iconv_t)-1) {
		strbuf_add(out, text, len);
		return strbuf_failed(out) ? err_nomem(err) : 0;
	}
	ret = convert(cd, text, len, out);
	iconv_close(cd);
	return ret < 0 ? err_nomem(err) : 0;
}

static bool index_lines(struct arena *arena, struct kept *kept)
{
	const char *text = kept->source.text, *end = text + kept->source.len;
	const char *next;

	for (const char *s = text; s < end; s = next, kept->lines++)
		line_end(s, end, &next);
	kept->starts = arena_alloc(arena, (kept->lines + 1) * sizeof(*kept->starts));
	if (!kept->starts)
		return false;
	kept->lines = 0;
	for (const char *s = text; s < end; s = next) {
		kept->starts[kept->lines++] = (uint32_t)(s - text);
		line_end(s, end, &next);
	}
	kept->starts[kept->lines] = (uint32_t)kept->source.len;
	return true;
}

/* Where the source of a name is noted; NULL when memory runs out. */
static struct slot *slot_of(struct sources *sources, const char *filename, bool *added)
{
	uint32_t id = intern_str(&sources->by_name, filename);

	*added = false;
	if (id == INTERN_NONE)
		return NULL;
	while (sources->slots.len < id) {
		if (!vec_push(&sources->slots))
			return NULL;
		*added = true;
	}
	return &sources->slots.items[id - 1];
}

static int keep(struct sources *sources, struct slot *slot, const struct source *from,
		struct err *err)
{
	struct kept *kept = arena_alloc(&sources->arena, sizeof(*kept));

	if (!kept)
		return err_nomem(err);
	kept->source = *from;
	kept->source.filename = arena_strdup(&sources->arena, from->filename);
	kept->source.path = arena_strdup(&sources->arena, from->path);
	kept->source.text = arena_strndup(&sources->arena, from->text, from->len);
	if (!kept->source.filename || !kept->source.path || !kept->source.text ||
	    !index_lines(&sources->arena, kept))
		return err_nomem(err);
	slot->kept = kept;
	return 1;
}

/* Names of a process's tree in /proc die with it, so another tree's file has none that could be
 * looked at later, unless it is to be seen from here as well. */
static const char *lasting_path(const char *root, const char *path, const struct stat *st,
				struct strbuf *full)
{
	struct stat here;

	if (!*root ||
	    (stat(path, &here) == 0 && here.st_dev == st->st_dev && here.st_ino == st->st_ino))
		return path;
	if (strncmp(root, "/proc/", strlen("/proc/")) == 0)
		return "";
	strbuf_printf(full, "%s%s", root, path);
	return strbuf_text(full);
}

static int read_file(struct sources *sources, struct slot *slot, const char *filename,
		     const char *root, const char *path, uid_t owner, struct err *err)
{
	struct strbuf raw = {0}, text = {0}, full = {0};
	struct stat st;
	int fd = safe_open(root, path, SAFE_OPEN_FOLLOW, &st, err);
	int ret;

	if (fd < 0)
		return fd == ERR_NOT_FOUND ? 0 : fd;
	ret = owner == ANYBODY || st.st_uid == owner
		      ? safe_read(fd, path, SOURCE_BYTES_MAX, &raw, err)
		      : err_set(err, ERR_PERMISSION, "%s is not a file of user %u", path, owner);
	if (!ret && raw.len)
		ret = decode(raw.buf, raw.len, &text, err);
	if (!ret) {
		struct source source = {
			.filename = filename,
			.path = lasting_path(root, path, &st, &full),
			.text = strbuf_text(&text),
			.len = text.len,
			.mtime_ns = st.st_mtim.tv_sec * 1000000000ll + st.st_mtim.tv_nsec,
			.hash = XXH3_64bits(strbuf_text(&raw), raw.len),
		};

		ret = strbuf_failed(&full) ? err_nomem(err) : keep(sources, slot, &source, err);
	}
	close(fd);
	strbuf_fini(&raw);
	strbuf_fini(&text);
	strbuf_fini(&full);
	return ret;
}

int sources_read(struct sources *sources, const char *filename, const char *root, const char *cwd,
		 struct err *err)
{
	struct strbuf path = {0};
	struct slot *slot;
	bool added;
	int ret = 0;

	if (!*filename || (filename[0] == '<' && filename[strlen(filename) - 1] == '>'))
		return 0;
	if (*filename != '/' && (!cwd || *cwd != '/'))
		return 0;
	slot = slot_of(sources, filename, &added);
	if (!slot)
		return err_nomem(err);
	if (!added)
		return slot->kept ? 1 : 0;
	if (*filename != '/')
		strbuf_printf(&path, "%s/", cwd);
	strbuf_str(&path, filename);
	if (strbuf_failed(&path))
		ret = err_nomem(err);
	else
		ret = read_file(sources, slot, filename, root ? root : "", path.buf, ANYBODY, err);
	strbuf_fini(&path);
	return ret;
}

int sources_read_as(struct sources *sources, const char *filename, const char *path, uid_t owner,
		    struct err *err)
{
	bool added;
	struct slot *slot = slot_of(sources, filename, &added);
	int ret;

	if (!slot)
		return err_nomem(err);
	if (slot->kept || !*filename)
		return 0;
	ret = read_file(sources, slot, filename, "", path, owner, err);
	if (slot->kept)
		slot->kept->source.path = "";
	return ret;
}

int sources_encode(const struct sources *sources, struct strbuf *out)
{
	uint32_t count = 0;

	for (size_t i = 0; i < sources->slots.len; i++)
		count += sources->slots.items[i].kept != NULL;
	strbuf_u32(out, SECTION_VERSION);
	strbuf_u32(out, count);
	for (size_t i = 0; i < sources->slots.len; i++) {
		const struct kept *kept = sources->slots.items[i].kept;

		if (!kept)
			continue;
		strbuf_blob(out, kept->source.filename, strlen(kept->source.filename));
		strbuf_blob(out, kept->source.path, strlen(kept->source.path));
		strbuf_u64(out, (uint64_t)kept->source.mtime_ns);
		strbuf_u64(out, kept->source.hash);
		strbuf_blob(out, kept->source.text, kept->source.len);
	}
	return strbuf_failed(out) ? ERR_NOMEM : 0;
}

static int decode_one(struct sources *sources, struct bytes *section, struct err *err)
{
	struct bytes filename = bytes_blob(section), path = bytes_blob(section), text;
	struct source source = {0};
	struct strbuf names = {0};
	struct slot *slot;
	bool added;
	int ret = 0;

	source.mtime_ns = (int64_t)bytes_u64(section);
	source.hash = bytes_u64(section);
	text = bytes_blob(section);
	if (section->bad)
		return err_set(err, ERR_CORRUPT, "the recorded Python sources end within a file");
	if (!bytes_left(&filename) || !*filename.at) /* no name that could be asked for */
		return 0;
	strbuf_add(&names, filename.at, bytes_left(&filename));
	strbuf_char(&names, '\0');
	strbuf_add(&names, path.at, bytes_left(&path));
	strbuf_char(&names, '\0');
	if (strbuf_failed(&names)) {
		ret = err_nomem(err);
		goto out;
	}
	source.filename = names.buf;
	source.path = names.buf + bytes_left(&filename) + 1;
	source.text = (const char *)text.at;
	source.len = bytes_left(&text);
	slot = slot_of(sources, source.filename, &added);
	if (!slot)
		ret = err_nomem(err);
	else if (!slot->kept)
		ret = keep(sources, slot, &source, err);
out:
	strbuf_fini(&names);
	return ret;
}

int sources_decode(struct sources *sources, struct bytes section, struct err *err)
{
	uint32_t version = bytes_u32(&section);
	uint32_t count = bytes_u32(&section);

	if (section.bad)
		return err_set(err, ERR_CORRUPT, "the recorded Python sources are cut short");
	if (version != SECTION_VERSION)
		return err_set(err, ERR_UNSUPPORTED,
			       "the recorded Python sources are of version %u", version);
	for (uint32_t i = 0; i < count; i++) {
		int ret = decode_one(sources, &section, err);

		if (ret < 0)
			return ret;
	}
	return 0;
}

const struct source *sources_find(const struct sources *sources, const char *filename)
{
	uint32_t id = intern_find(&sources->by_name, filename, strlen(filename));

	if (!id || id == INTERN_NONE || id > sources->slots.len ||
	    !sources->slots.items[id - 1].kept)
		return NULL;
	return &sources->slots.items[id - 1].kept->source;
}

int source_changed(const struct source *source)
{
	struct strbuf raw = {0};
	struct stat st;
	int fd, ret;

	if (*source->path != '/')
		return -1;
	fd = safe_open("", source->path, SAFE_OPEN_FOLLOW, &st, NULL);
	if (fd < 0)
		return -1;
	ret = safe_read(fd, source->path, SOURCE_BYTES_MAX, &raw, NULL);
	close(fd);
	if (ret == ERR_UNSUPPORTED)
		ret = 1;
	else if (ret < 0)
		ret = -1;
	else
		ret = XXH3_64bits(strbuf_text(&raw), raw.len) != source->hash;
	strbuf_fini(&raw);
	return ret;
}

const char *source_line(const struct source *source, uint32_t number, size_t *len)
{
	const struct kept *kept = (const struct kept *)source;
	const char *start, *next;

	if (!number || number > kept->lines)
		return NULL;
	start = source->text + kept->starts[number - 1];
	*len = (size_t)(line_end(start, source->text + source->len, &next) - start);
	return start;
}

uint32_t source_line_count(const struct source *source)
{
	return ((const struct kept *)source)->lines;
}
