/* Where symbols come from and what they are called, against what binutils say of the same files. */
#include "base/strbuf.h"
#include "symbol/demangle.h"
#include "symbol/elf.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static const char source[] =
	"#include <stdio.h>\n"
	"__attribute__((noinline)) static int hidden_one(int x) { return x * 3 + 1; }\n"
	"__attribute__((noinline)) static int hidden_two(int x) { return hidden_one(x) ^ x; }\n"
	"int exported(int x) { return hidden_two(x) + hidden_one(x + 1); }\n"
	"int main(int argc, char **argv) { printf(\"%d\\n\", exported(argc)); return 0; }\n";

/* Runs a command in the folder; false where it fails. */
static bool run(const char *fmt, ...)
{
	char command[4096];
	int n = snprintf(command, sizeof(command), "cd %s && (", folder);
	va_list ap;

	va_start(ap, fmt);
	n += vsnprintf(command + n, sizeof(command) - (size_t)n, fmt, ap);
	va_end(ap);
	snprintf(command + n, sizeof(command) - (size_t)n, ") >/dev/null 2>&1");
	return system(command) == 0;
}

static void need(const char *tools)
{
	if (!run("for t in %s; do command -v $t || exit 1; done", tools)) {
		print_message("skipped: takes %s\n", tools);
		skip();
	}
}

static const char *in_folder(const char *name)
{
	static char path[4][256];
	static unsigned int next;
	char *buf = path[next++ % 4];

	snprintf(buf, 256, "%s/%s", folder, name);
	return buf;
}

static int setup(void **state)
{
	FILE *file;

	snprintf(folder, sizeof(folder), "/tmp/pyperf-symbols-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	file = fopen(in_folder("t.c"), "w");
	if (!file)
		return -1;
	fputs(source, file);
	return fclose(file);
}

static int teardown(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

/* Every function of `full`, as nm lists them, is found at the same address in `stripped`. */
static void finds_what_nm_lists(const char *full, const char *stripped)
{
	char command[512], line[512], name[256];
	struct elf_file *elf;
	unsigned long long vaddr, size;
	unsigned int count = 0;
	FILE *nm;

	assert_int_equal(elf_open(&elf, stripped, NULL), 0);
	snprintf(command, sizeof(command), "nm --defined-only -S %s | grep -i ' t '", full);
	nm = popen(command, "r");
	while (fgets(line, sizeof(line), nm)) {
		struct elf_symbol symbol;

		if (sscanf(line, "%llx %llx %*c %255s", &vaddr, &size, name) != 3 || !size)
			continue;
		assert_true(elf_symbol_at(elf, vaddr + size / 2, &symbol));
		assert_string_equal(symbol.name, name);
		assert_int_equal(symbol.vaddr, vaddr);
		assert_int_equal(symbol.size, size);
		count++;
	}
	assert_int_equal(pclose(nm), 0);
	assert_true(count >= 4);
	elf_close(elf);
}

static bool finds_hidden(const char *path)
{
	struct elf_symbol symbol;
	struct elf_file *elf;
	bool found;

	if (elf_open(&elf, path, NULL) < 0)
		fail_msg("%s cannot be opened", path);
	found = elf_symbol_by_name(elf, "hidden_one", &symbol) &&
		elf_symbol_at(elf, symbol.vaddr + 1, &symbol) &&
		strcmp(symbol.name, "hidden_one") == 0;
	elf_close(elf);
	return found;
}

#define SPLIT(link)                                                               \
	"objcopy --only-keep-debug full full.debug && strip -o stripped full && " \
	"objcopy --add-gnu-debuglink=" link " stripped"

static void debug_link_with_checksum(void **state)
{
	need("cc objcopy strip nm");
	/* Without build-ids the checksum alone tells. */
	assert_true(run("cc -O1 -g -Wl,--build-id=none -o full t.c && " SPLIT("full.debug")));
	finds_what_nm_lists(in_folder("full"), in_folder("stripped"));
	assert_true(run("mkdir -p .debug && mv full.debug .debug/"));
	assert_true(finds_hidden(in_folder("stripped")));
	/* By another name of the file the link still leads to its own folder. */
	assert_true(run("mkdir -p links && ln -sf ../stripped links/other"));
	assert_true(finds_hidden(in_folder("links/other")));
	/* One byte more, and it is another file. */
	assert_true(run("printf x >>.debug/full.debug"));
	assert_false(finds_hidden(in_folder("stripped")));
	assert_true(run("rm -r .debug"));
	assert_false(finds_hidden(in_folder("stripped")));
}

static void debug_link_with_build_id(void **state)
{
	need("cc objcopy strip nm");
	assert_true(run("cc -O1 -g -Wl,--build-id=sha1 -o full t.c && " SPLIT("full.debug")));
	finds_what_nm_lists(in_folder("full"), in_folder("stripped"));
	/* Of another build. */
	assert_true(run("cc -O2 -g -Wl,--build-id=sha1 -o full t.c && "
			"objcopy --only-keep-debug full full.debug"));
	assert_false(finds_hidden(in_folder("stripped")));
	assert_true(run("rm full.debug"));
}

/* As Fedora's build makes it: "MiniDebugInfo" in gdb's manual. */
static void mini_debug_info(void **state)
{
	need("cc objcopy strip nm xz");
	assert_true(run("cc -O1 -g -o full t.c && "
			"nm full --format=posix --defined-only | "
			"awk '$2 == \"T\" || $2 == \"t\" { print $1 }' >keep && "
			"objcopy --only-keep-debug full debug && "
			"objcopy -S --remove-section .comment --keep-symbols=keep debug mini"));
	assert_true(run("xz -k -f mini && strip -o stripped full && "
			"objcopy --add-section .gnu_debugdata=mini.xz stripped"));
	finds_what_nm_lists(in_folder("full"), in_folder("stripped"));
	/* Cut, broken, and no xz at all. */
	assert_true(run("head -c 200 mini.xz >cut && strip -o bad full && "
			"objcopy --add-section .gnu_debugdata=cut bad"));
	assert_false(finds_hidden(in_folder("bad")));
	assert_true(run("head -c 300 /dev/urandom >noise && strip -o bad full && "
			"objcopy --add-section .gnu_debugdata=noise bad"));
	assert_false(finds_hidden(in_folder("bad")));
	/* More than symbols ever take. */
	assert_true(run("head -c 80M /dev/zero | xz -0 >bomb && strip -o bad full && "
			"objcopy --add-section .gnu_debugdata=bomb bad"));
	assert_false(finds_hidden(in_folder("bad")));
}

/* A server of debuginfod is any that serves /buildid/ID/debuginfo. */
static void debuginfod(void **state)
{
	struct elf_symbol symbol;
	struct elf_file *elf;
	char line[64], url[80], cache[80];
	FILE *server;
	int port = 0;

	need("cc objcopy strip nm python3");
	assert_true(run("cc -O1 -g -Wl,--build-id=sha1 -o full t.c && strip -o stripped full && "
			"id=$(readelf -n full | awk '/Build ID/ { print $3 }') && "
			"mkdir -p www/buildid/$id && cp full www/buildid/$id/debuginfo"));
	assert_false(finds_hidden(in_folder("stripped")));
	snprintf(cache, sizeof(cache), "%s/cache", folder);
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	assert_int_equal(chdir(folder), 0);
	server = popen("exec python3 -c 'import http.server, os, threading\n"
		       "os.chdir(\"www\")\n"
		       "class Quiet(http.server.SimpleHTTPRequestHandler):\n"
		       "    def log_message(self, *a): pass\n"
		       "server = http.server.ThreadingHTTPServer((\"127.0.0.1\", 0), Quiet)\n"
		       "print(server.server_port, os.getpid(), flush=True)\n"
		       "server.serve_forever()'",
		       "r");
	assert_non_null(fgets(line, sizeof(line), server));
	int pid = 0;
	assert_int_equal(sscanf(line, "%d %d", &port, &pid), 2);
	assert_int_equal(elf_open(&elf, in_folder("stripped"), NULL), 0);
	unsetenv("DEBUGINFOD_URLS");
	assert_false(elf_fetch_debug_file(elf));
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
	setenv("DEBUGINFOD_URLS", url, 1);
	if (elf_fetch_debug_file(elf)) {
		assert_true(elf_symbol_by_name(elf, "hidden_one", &symbol));
	} else {
		print_message("skipped: libdebuginfod.so.1 is not installed\n");
	}
	bool fetched = elf_fetch_debug_file(elf);

	elf_close(elf);
	unsetenv("DEBUGINFOD_URLS");
	kill(pid, SIGTERM);
	pclose(server);
	if (!fetched)
		skip();
}

static void check_name(struct elf_file *elf, uint64_t vaddr, const char *name)
{
	struct elf_symbol symbol;
	bool found = elf_symbol_at(elf, vaddr, &symbol);

	assert_true(found == (name != NULL));
	if (name)
		assert_string_equal(symbol.name, name);
}

/* Assembly that does not say which labels are functions: they are, but for those within another
 * one, those that are of another name, and those of data. */
static void labels_of_assembly(void **state)
{
	struct elf_symbol whole;
	struct elf_file *elf;
	FILE *file;

	need("cc");
	file = fopen(in_folder("t.s"), "w");
	assert_non_null(file);
	fputs(".text\n.space 64\nalone: .space 8\nnext: .space 8\n"
	      ".globl whole\n.type whole, %function\nalias: whole: .space 4\nwithin: .space 4\n"
	      ".size whole, 8\n.type open, %function\nopen: .space 4\nwithin_open: .space 4\n"
	      ".data\ndata: .space 8\n",
	      file);
	fclose(file);
	assert_true(run("cc -shared -nostdlib -o labels t.s"));
	assert_int_equal(elf_open(&elf, in_folder("labels"), NULL), 0);
	assert_true(elf_symbol_by_name(elf, "whole", &whole));
	check_name(elf, whole.vaddr - 17, NULL);
	check_name(elf, whole.vaddr - 16, "alone");
	check_name(elf, whole.vaddr - 9, "alone");
	check_name(elf, whole.vaddr - 8, "next");
	check_name(elf, whole.vaddr, "whole");
	check_name(elf, whole.vaddr + 5, "whole");
	check_name(elf, whole.vaddr + 13, "open");
	assert_true(elf_symbol_by_name(elf, "data", &whole));
	check_name(elf, whole.vaddr, NULL);
	elf_close(elf);
}

static void huge_sparse_file(void **state)
{
	struct elf_file *elf;
	struct elf_symbol symbol;

	need("cc truncate");
	assert_true(run("cc -O1 -g -o huge t.c && truncate -s 4G huge"));
	assert_int_equal(elf_open(&elf, in_folder("huge"), NULL), 0);
	assert_true(elf_symbol_by_name(elf, "hidden_one", &symbol));
	elf_close(elf);
	/* Nothing but a hole, and a header alone. */
	assert_true(run("truncate -s 4G hole && head -c 64 huge >head && truncate -s 4G head"));
	assert_int_not_equal(elf_open(&elf, in_folder("hole"), NULL), 0);
	if (elf_open(&elf, in_folder("head"), NULL) == 0) {
		assert_false(elf_symbol_by_name(elf, "hidden_one", &symbol));
		assert_false(elf_symbol_at(elf, 0x1000, &symbol));
		elf_close(elf);
	}
	/* A debug file of that size is not read for its checksum. */
	assert_true(run("cc -O1 -g -Wl,--build-id=none -o full t.c && " SPLIT("full.debug")) &&
		    run("truncate -s 4G full.debug"));
	assert_false(finds_hidden(in_folder("stripped")));
	assert_true(run("rm huge hole head full.debug"));
}

static void check_plain(const char *mangled, const char *plain)
{
	struct strbuf out = {0};

	strbuf_str(&out, "> ");
	if (!demangle(mangled, &out))
		fail_msg("%s is not demangled", mangled);
	assert_string_equal(strbuf_text(&out) + 2, plain);
	strbuf_fini(&out);
}

static void is_built_in(void)
{
#ifndef HAVE_DEMANGLE
	print_message("skipped: built without libiberty\n");
	skip();
#endif
}

/* Examples of the two RFCs of Rust, and of the Itanium ABI. */
static void known_names(void **state)
{
	struct strbuf out = {0};

	is_built_in();
	check_plain("_ZN3foo3barEi", "foo::bar");
	check_plain("_Z3barv@plt", "bar@plt");
	check_plain("_ZNSt6vectorIiSaIiEE9push_backERKi",
		    "std::vector<int, std::allocator<int> >::push_back");
	check_plain("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad");
	check_plain("_RNvC6_123foo3bar", "123foo::bar");
	check_plain("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
	strbuf_str(&out, "kept");
	assert_false(demangle("PyEval_EvalCode", &out));
	assert_false(demangle("_PyEval_EvalFrameDefault", &out));
	assert_false(demangle("_Z", &out));
	assert_false(demangle("_ZN", &out));
	assert_false(demangle("_R", &out));
	assert_false(demangle("", &out));
	assert_string_equal(strbuf_text(&out), "kept");
	strbuf_fini(&out);
}

/* The names of a C++ library, in the words of c++filt. */
static void names_of_a_library(void **state)
{
	static const char list[] =
		"nm -D --defined-only $(cc -print-file-name=libstdc++.so.6) | "
		"awk '$2 ~ /[TtW]/ { sub(/@.*/, \"\", $3); print $3 }' | head -2000 >names && "
		"c++filt -p -i <names >plain";
	char name[4096], plain[8192];
	FILE *names, *plains;
	unsigned int count = 0;

	is_built_in();
	need("cc nm c++filt awk");
	if (!run(list)) {
		print_message("skipped: no libstdc++\n");
		skip();
	}
	names = fopen(in_folder("names"), "r");
	plains = fopen(in_folder("plain"), "r");
	while (fgets(name, sizeof(name), names) && fgets(plain, sizeof(plain), plains)) {
		name[strcspn(name, "\n")] = plain[strcspn(plain, "\n")] = '\0';
		if (strcmp(name, plain) == 0)
			continue;
		check_plain(name, plain);
		count++;
	}
	fclose(names);
	fclose(plains);
	print_message("%u names\n", count);
	assert_true(count > 100);
}

/* Each 'S' doubles what came before it. */
static void hostile_names_end(void **state)
{
	struct strbuf name = {0}, out = {0};

	strbuf_str(&name, "_Z1fI");
	strbuf_str(&name, "1aIii");
	for (int i = 0; i < 60; i++)
		strbuf_printf(&name, "E1aIS%c_S%c_", i < 10 ? '0' + i : 'A' + i % 26, '0');
	strbuf_str(&name, "EEvv");
	demangle(strbuf_text(&name), &out);
	assert_true(out.len <= 1 << 16);
	strbuf_reset(&name);
	strbuf_str(&name, "_Z1f");
	for (int i = 0; i < 3000; i++)
		strbuf_str(&name, "P");
	strbuf_str(&name, "i");
	demangle(strbuf_text(&name), &out);
	strbuf_reset(&name);
	strbuf_str(&name, "_R");
	for (int i = 0; i < 7000; i++)
		strbuf_str(&name, "Nv");
	demangle(strbuf_text(&name), &out);
	strbuf_fini(&name);
	strbuf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(debug_link_with_checksum),
		cmocka_unit_test(debug_link_with_build_id),
		cmocka_unit_test(mini_debug_info),
		cmocka_unit_test(debuginfod),
		cmocka_unit_test(labels_of_assembly),
		cmocka_unit_test(huge_sparse_file),
		cmocka_unit_test(known_names),
		cmocka_unit_test(names_of_a_library),
		cmocka_unit_test(hostile_names_end),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
