/*
 * A program that looks like CPython 3.12 from outside, and lies.
 *
 *     hostile_python KIND
 *
 * It has the symbols, the thread key and a thread state; what hangs from that is what KIND says.
 * Then it spins for a while. Offsets are those of CPython 3.12 on 64-bit machines.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define MANY 100000

const unsigned int Py_Version = 0x030c01f0;
unsigned char _PyRuntime[1 << 18];

struct frame {
	struct code *code;
	struct frame *previous;
	uint64_t other[5];
	uint64_t instr;
	char more[6];
	char owner;
	char end[9];
};

struct string {
	uint64_t refcount, type, length, hash;
	uint32_t state, pad;
	char data[64];
};

struct code {
	uint64_t refcount, type, units, consts, names;
	uint32_t flags[7];
	int32_t firstlineno;
	uint64_t counts[5];
	struct string *filename, *name, *qualname;
	void *table;
	uint64_t more[6];
	unsigned char bytes[64];
};

_Static_assert(__builtin_offsetof(struct frame, instr) == 56, "");
_Static_assert(__builtin_offsetof(struct frame, owner) == 70, "");
_Static_assert(__builtin_offsetof(struct code, firstlineno) == 68, "");
_Static_assert(__builtin_offsetof(struct code, filename) == 112, "");
_Static_assert(__builtin_offsetof(struct code, table) == 136, "");
_Static_assert(__builtin_offsetof(struct code, bytes) == 192, "");

static struct frame frames[MANY];
static struct code codes[MANY];
static struct string name = {1, 0, 7, 0, 1 << 2 | 1 << 5 | 1 << 6, 0, "hostile"};
static struct {
	uint64_t refcount, type, size, hash;
	unsigned char data[64];
} table = {1, 0, 2, 0, {0xf8 | 0x07, 0}};
static struct frame *current;
static struct {
	uint64_t other[7];
	void *cframe;
} state;
static volatile int over;

/* Frames that are as they should be, each a call from the next; `distinct` code objects. */
static void fill(int count, int distinct)
{
	for (int i = 0; i < distinct; i++) {
		codes[i] = (struct code){.refcount = 1, .units = 32, .firstlineno = i + 1};
		codes[i].filename = codes[i].name = codes[i].qualname = &name;
		codes[i].table = &table;
	}
	for (int i = 0; i < count; i++) {
		frames[i].code = &codes[i % distinct];
		frames[i].previous = i + 1 < count ? &frames[i + 1] : NULL;
		frames[i].instr = (uintptr_t)frames[i].code->bytes + 2;
	}
	current = frames;
}

static void *change(void *arg)
{
	uint64_t random = 88172645463325252u;

	while (!over) {
		struct frame *frame;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		frame = &frames[random >> 8 & 63];
		switch (random & 3) {
		case 0:
			frame->previous = (void *)(random >> (random & 63));
			break;
		case 1:
			frame->previous = &frames[random >> 16 & 63];
			break;
		case 2:
			frame->code = random & 64 ? &codes[random >> 20 & 63] : (void *)random;
			break;
		default:
			frame->owner = (char)(random >> 30);
			codes[random >> 40 & 63].name = random & 128 ? &name : (void *)random;
		}
	}
	return arg;
}

static int prepare(const char *kind)
{
	static struct string endless;
	static struct code *wild;
	unsigned char *space;
	pthread_t thread;

	fill(50, 5);
	if (!strcmp(kind, "sound"))
		return 1;
	if (!strcmp(kind, "cycle")) {
		frames[0].previous = frames;
	} else if (!strcmp(kind, "cycles")) {
		frames[49].previous = frames + 7;
	} else if (!strcmp(kind, "shims")) {
		for (int i = 0; i < 50; i++)
			frames[i].owner = 3;
		frames[49].previous = frames;
	} else if (!strcmp(kind, "endless")) {
		fill(MANY, 5);
	} else if (!strcmp(kind, "codes")) { /* all new, over and over */
		fill(MANY, MANY);
		for (int i = 999; i < MANY; i += 1000)
			frames[i].previous = NULL;
		return 2;
	} else if (!strcmp(kind, "wild")) {
		frames[3].previous = (void *)0x123456789000;
	} else if (!strcmp(kind, "kernel")) {
		frames[3].previous = (void *)0xffff888000000000;
	} else if (!strcmp(kind, "noncanonical")) {
		frames[3].previous = (void *)0xdead000000000000;
	} else if (!strcmp(kind, "misaligned")) {
		frames[3].previous = (void *)((uintptr_t)&frames[4] + 3);
	} else if (!strcmp(kind, "misaligned-code")) {
		frames[3].code = (void *)((uintptr_t)&codes[4] + 1);
	} else if (!strcmp(kind, "wild-code")) {
		frames[3].code = wild = (void *)0x7fffffffe000;
	} else if (!strcmp(kind, "state")) {
		state.cframe = (void *)0x8888888888888888;
		return 1;
	} else if (!strcmp(kind, "key")) {
		*(uint32_t *)(void *)(_PyRuntime + 1548) = 0x7fffffff;
	} else if (!strcmp(kind, "strings")) { /* of exabytes, of gigabytes, of no kind */
		endless = name;
		endless.length = UINT64_MAX / 2;
		codes[0].name = &endless;
		space = mmap(NULL, 3ul << 30, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		memcpy(space, &name, sizeof(name));
		((struct string *)(void *)space)->length = 3ul << 29;
		codes[1].name = codes[1].filename = (void *)space;
		codes[2].name = (void *)(space + 4096); /* zero */
		codes[3].qualname = (void *)1;
	} else if (!strcmp(kind, "tables")) { /* numbers that never end, sizes that cannot be */
		space = mmap(NULL, 64ul << 20, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		memset(space, 0xff, 12 << 20);
		((uint64_t *)(void *)space)[2] = 12 << 20;
		codes[0].table = space;
		((uint64_t *)(void *)(space + (16 << 20)))[2] = UINT64_MAX;
		codes[1].table = space + (16 << 20);
		((uint64_t *)(void *)(space + (32 << 20)))[2] = 16 << 20; /* zeros */
		codes[2].table = space + (32 << 20);
		codes[3].table = (void *)7;
	} else if (!strcmp(kind, "changing")) {
		fill(64, 64);
		pthread_create(&thread, NULL, change, NULL);
	} else {
		return 0;
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct timespec ts;
	pthread_key_t key;
	int how;

	pthread_key_create(&key, NULL);
	((uint32_t *)(void *)(_PyRuntime + 1544))[0] = 1;
	((uint32_t *)(void *)(_PyRuntime + 1544))[1] = key;
	state.cframe = &current;
	how = argc > 1 ? prepare(argv[1]) : 0;
	if (!how) {
		fprintf(stderr, "hostile_python: no such kind\n");
		return 2;
	}
	pthread_setspecific(key, &state);
	for (volatile long i = 0;; i++) {
		if (i % 100000)
			continue;
		if (how == 2)
			current = &frames[i / 100000 * 1000 % MANY];
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
		if (ts.tv_sec || ts.tv_nsec > 120000000)
			break;
	}
	over = 1;
	return 0;
}
