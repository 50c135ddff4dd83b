/*
 * Stops a thread and prints its native stack by each back end, for comparing with other tools:
 *
 *	build/release/tests/bench/unwind_thread PID [TID]
 *
 * A line "= BACK-END GUESSED END", then one for each frame: ip, sp, how its caller was found, the
 * address within the file, and the file ("-" where there is none).
 */
#include "symbol/elf.h"
#include "tests/unit/stopped.h"

#include <inttypes.h>
#include <stdlib.h>

#define MAX_FRAMES 8192

static void print_frame(struct stopped *stopped, const struct unwind_frame *frame)
{
	static const char *const by[] = {"table", "code", "frame-pointer", "search"};
	uint64_t pc = frame->ip - !frame->exact, bias;
	const struct stopped_map *map = stopped_find(stopped, pc);
	struct elf_file *elf = NULL;
	struct unwind_module module;

	printf("%" PRIx64 " %" PRIx64 " %s ", frame->ip, frame->sp, by[frame->by]);
	if (stopped_module(stopped, pc, &module) == 0 && module.path &&
	    elf_open(&elf, module.path, NULL) == 0 &&
	    elf_bias(elf, module.start, module.file_offset, &bias))
		printf("%" PRIx64 " %s\n", pc - bias, map->path);
	else
		printf("- -\n");
	elf_close(elf);
}

int main(int argc, char **argv)
{
	pid_t pid = argc > 1 ? atoi(argv[1]) : 0, tid = argc > 2 ? atoi(argv[2]) : pid;
	struct unwind_source source;
	struct stopped stopped;

	if (pid <= 0 || !stopped_take(&stopped, pid, tid)) {
		fprintf(stderr, "unwind_thread: cannot stop the thread\n");
		return 1;
	}
	source = stopped_source(&stopped);
	for (const struct unwind_backend *const *with = unwind_backends(); *with; with++) {
		static struct unwind_frame frames[MAX_FRAMES];
		struct unwind_stack stack = {.frames = frames, .max = MAX_FRAMES};
		struct unwind_files *files = unwind_files_new();
		struct unwinder *unwinder = files ? (*with)->open(files, &source, NULL) : NULL;

		if (!unwinder)
			return 1;
		(*with)->stack(unwinder, &stopped.input, &stack);
		printf("= %s %zu %s\n", (*with)->name, stack.guessed, unwind_end_text(stack.end));
		for (size_t i = 0; i < stack.count; i++)
			print_frame(&stopped, &frames[i]);
		(*with)->close(unwinder);
		unwind_files_free(files);
	}
	stopped_release(&stopped, 0);
	return 0;
}
