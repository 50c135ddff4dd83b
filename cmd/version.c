#include "cmd/cmd.h"

const struct poptOption version_options[] = {POPT_TABLEEND};

#ifdef HAVE_BPF
#define WITH_BPF 1
#else
#define WITH_BPF 0
#endif
#ifdef HAVE_CAPSTONE
#define WITH_CAPSTONE 1
#else
#define WITH_CAPSTONE 0
#endif
#ifdef HAVE_LZMA
#define WITH_LZMA 1
#else
#define WITH_LZMA 0
#endif
#ifdef HAVE_DEMANGLE
#define WITH_DEMANGLE 1
#else
#define WITH_DEMANGLE 0
#endif
#ifdef HAVE_UNWIND
#define WITH_UNWIND 1
#else
#define WITH_UNWIND 0
#endif

#ifdef HAVE_PROTOBUF
#define WITH_PROTOBUF 1
#else
#define WITH_PROTOBUF 0
#endif

#ifdef HAVE_MICROHTTPD
#define WITH_MICROHTTPD 1
#else
#define WITH_MICROHTTPD 0
#endif

#ifdef HAVE_NCURSES
#define WITH_NCURSES 1
#else
#define WITH_NCURSES 0
#endif

/* One row per library: what it is for, and the packages that bring it where it was left out. */
static const struct {
	const char *name, *purpose, *packages;
	int built_in;
} features[] = {
	{"bpf", "Python lines from the kernel's own sampling", "clang bpftool libbpf-dev",
	 WITH_BPF},
	{"libpfm4", "event names of each CPU model", "libpfm4-dev", 1},
	{"libdw", "symbols, source lines, build-ids", "libdw-dev", 1},
	{"libunwind", "native stacks, beside our own unwinder and libdw's", "libunwind-dev",
	 WITH_UNWIND},
	{"liblzma", "symbols packed within stripped files", "liblzma-dev", WITH_LZMA},
	{"libiberty", "names of C++ and Rust as in their sources", "libiberty-dev", WITH_DEMANGLE},
	{"zstd", "compressed recordings and exports", "libzstd-dev", 1},
	{"zlib", "compressed exports", "zlib1g-dev", 1},
	{"protobuf", "exports for pprof", "libprotobuf-c-dev protobuf-c-compiler", WITH_PROTOBUF},
	{"capstone", "disassembly in annotate", "libcapstone-dev", WITH_CAPSTONE},
	{"microhttpd", "pages served to browsers by view", "libmicrohttpd-dev", WITH_MICROHTTPD},
	{"ncurses", "interactive views on terminals", "libncurses-dev", WITH_NCURSES},
	{"jansson", "JSON output", "libjansson-dev", 1},
	{"yajl", "traces of other tools", "libyajl-dev", 1},
};

int cmd_version(int argc, const char **argv)
{
	const struct command *command = command_find("version");
	poptContext context;
	int status;

	context = command_options(command, argc, argv, 0, &status);
	if (!context)
		return status;
	poptFreeContext(context);
	printf("pyperf %s\n", PYPERF_VERSION);
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		printf("  %-10s [%s] %s", features[i].name, features[i].built_in ? "on " : "off",
		       features[i].purpose);
		if (!features[i].built_in)
			printf(" (build with %s)", features[i].packages);
		printf("\n");
	}
	return command_finish_output(0);
}
