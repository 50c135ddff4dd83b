# pyperf: make, make check, make install, make SAN=address,undefined check, make fuzz, make bench,
# make format lint. Objects of each configuration lie in build/CONFIG/, so switching rebuilds nothing.
# Another machine's: CC=TRIPLE-gcc CONFIG_SUFFIX=-NAME; scripts/guest does so.

VERSION := 0.1.0
PREFIX ?= /usr/local
CC ?= cc
CLANG ?= clang
BPFTOOL ?= bpftool
PYTHON ?= python3
SAN ?=
# make V=1 shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),,@echo '  $(1) $@')

# Development builds stop at warnings; packagers may say WERROR=.
WERROR ?= -Werror

comma := ,
CONFIG := $(if $(SAN),san-$(subst $(comma),-,$(SAN)),release)$(CONFIG_SUFFIX)
B := build/$(CONFIG)

CFLAGS ?= -O2 -g
WARNINGS := -Wall -Wextra -Wshadow -Wvla -Wmissing-prototypes -Wstrict-prototypes -Wno-unused-parameter $(WERROR)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
CPPFLAGS_ALL = -D_GNU_SOURCE -DPYPERF_VERSION='"$(VERSION)"' -Ilib -I. -I$(B) $(FEATURE_CPPFLAGS) $(CPPFLAGS)
CFLAGS_ALL = -std=gnu11 $(CFLAGS) $(WARNINGS) $(SANFLAGS)
LDLIBS_ALL = $(SANFLAGS) $(FEATURE_LIBS) -lpthread -lm -ldl $(LDLIBS)

LIB_SRC := $(sort $(wildcard lib/*/*.c) $(filter-out %.bpf.c,$(wildcard perfmap/*.c)))
CMD_SRC := $(sort $(wildcard cmd/*.c))
BPF_SRC := $(sort $(wildcard perfmap/*.bpf.c))
UNIT_SRC := $(sort $(wildcard tests/unit/test_*.c))
FUZZ_SRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
BENCH_SRC := $(sort $(wildcard tests/bench/*.c))
WORKLOAD_SRC := $(sort $(wildcard tests/workloads/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
CMD_OBJ := $(CMD_SRC:%.c=$(B)/%.o)
UNIT_BIN := $(UNIT_SRC:%.c=$(B)/%)
FUZZ_BIN := $(FUZZ_SRC:%.c=$(B)/%)
BENCH_BIN := $(BENCH_SRC:%.c=$(B)/%)
WORKLOAD_BIN := $(WORKLOAD_SRC:%.c=$(B)/%)

.PHONY: all check guest-test unit install uninstall fuzz fuzz-replay bench format format-check lint clean workloads
.DELETE_ON_ERROR:
.SECONDARY:

all: $(B)/pyperf

# What this machine has: one probe per library, its answer in features.mk. Probed anew when the
# probe changes or after `make clean`.
ifneq ($(MAKECMDGOALS),clean)
include $(B)/features.mk
endif
$(B)/features.mk: scripts/probe-features
	@mkdir -p $(@D)
	$(Q)CC='$(CC)' CLANG='$(CLANG)' BPFTOOL='$(BPFTOOL)' PROTOC_C='$(PROTOC_C)' scripts/probe-features >$@.tmp
	$(Q)mv $@.tmp $@

$(B)/%.o: %.c $(B)/features.mk
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(B)/libpyperf.a: $(LIB_OBJ)
	$(call say,AR  )
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(B)/pyperf: $(CMD_OBJ) $(B)/libpyperf.a
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $(CMD_OBJ) $(B)/libpyperf.a $(LDLIBS_ALL)

# The files of the page are brought in by the assembler.
$(B)/lib/output/page.o: $(wildcard lib/output/page/*.html lib/output/page/*.css lib/output/page/*.js)

# The walker's BPF program: compiled by clang, embedded as a skeleton.
# clang names a vendor in the middle, Debian's folders do not.
TRIPLE := $(subst -pc-,-,$(shell $(CC) -dumpmachine))
BPF_ARCH := $(patsubst riscv64,riscv,$(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(firstword $(subst -, ,$(TRIPLE))))))
BPF_INCLUDES := $(addprefix -idirafter,$(wildcard /usr/include/$(TRIPLE) /usr/$(TRIPLE)/include))
$(B)/%.bpf.o: %.bpf.c $(B)/features.mk
	@mkdir -p $(@D)
	$(call say,BPF )
	$(Q)$(CLANG) -target bpf -D__TARGET_ARCH_$(BPF_ARCH) -O2 -g -Wall -Werror -Ilib -I. $(BPF_INCLUDES) -MMD -MP -MF $(@:.o=.d) -MT $@ -c -o $@.tmp $<
	$(Q)$(BPFTOOL) gen object $@ $@.tmp
	$(Q)rm -f $@.tmp
$(B)/%.skel.h: $(B)/%.bpf.o
	$(Q)$(BPFTOOL) gen skeleton $< name $(notdir $*)_bpf >$@.tmp
	$(Q)mv $@.tmp $@
ifeq ($(HAVE_BPF),1)
$(LIB_OBJ): | $(BPF_SRC:%.bpf.c=$(B)/%.skel.h)
endif

# The code for the messages of pprof and OTLP, from their own descriptions.
PROTOC_C ?= protoc-c
PROTO_SRC := $(sort $(wildcard lib/output/vendor/*/*.proto))
PROTO_C := $(PROTO_SRC:lib/output/vendor/%.proto=$(B)/%.pb-c.c)
$(PROTO_C): $(B)/%.pb-c.c: lib/output/vendor/%.proto $(B)/features.mk
	@mkdir -p $(@D)
	$(call say,GEN )
	$(Q)$(PROTOC_C) --proto_path=$(<D) --c_out=$(@D) $<
$(PROTO_C:.c=.o): %.o: %.c
	$(call say,CC  )
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c -o $@ $<
ifeq ($(HAVE_PROTOBUF),1)
$(LIB_OBJ): | $(PROTO_C)
$(B)/libpyperf.a: $(PROTO_C:.c=.o)
endif

# Tests
$(B)/tests/unit/%: $(B)/tests/unit/%.o $(B)/libpyperf.a
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $< $(B)/libpyperf.a -lcmocka $(LDLIBS_ALL)
$(B)/tests/workloads/%: tests/workloads/%.c
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -Wall -o $@ $< -lpthread

# make check KINDS='unit cli' runs those only: see tests/run.
KINDS ?=
workloads: $(WORKLOAD_BIN)
unit: $(UNIT_BIN)
check: all unit workloads fuzz-replay $(BENCH_BIN)
	BUILD=$(CURDIR)/$(B) PYTHON=$(PYTHON) tests/run $(KINDS)

# Another machine with hardware counters: emulated, so it takes a minute.
guest-test:
	PYTHON=$(PYTHON) tests/run guest

# Fuzzing: with clang as libFuzzer (make fuzz), with any compiler as a replay of the corpus.
FUZZ_SECONDS ?= 60
# gcc takes a flexible array in the middle without a word, and we use it.
FUZZ_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -Wno-gnu-variable-sized-type-not-at-end
$(B)/tests/fuzz/%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/replay.o $(B)/libpyperf.a
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LDLIBS_ALL)
fuzz-replay: $(FUZZ_BIN)
fuzz:
	$(MAKE) CONFIG_SUFFIX=-fuzz CC=$(CLANG) SAN= CFLAGS='-O1 -g $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link' LDFLAGS='-fsanitize=fuzzer' fuzz-run
.PHONY: fuzz-run
fuzz-run: $(FUZZ_SRC:%.c=$(B)/%.libfuzzer)
	@set -e; for t in $^; do n=$$(basename $$t .libfuzzer); mkdir -p build/corpus/$$n; \
	  echo "== $$n"; $$t -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
	    build/corpus/$$n $$(ls -d tests/fuzz/corpus/$$n 2>/dev/null); done
$(B)/tests/fuzz/%.libfuzzer: $(B)/tests/fuzz/%.o $(B)/libpyperf.a
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LDLIBS_ALL)

$(B)/tests/bench/%: $(B)/tests/bench/%.o $(B)/libpyperf.a
	$(call say,LINK)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $< $(B)/libpyperf.a $(LDLIBS_ALL)
# make bench BENCH='pythons --samples 250000' runs a part: see tests/bench/run.
BENCH ?=
bench: all workloads $(BENCH_BIN)
	BUILD=$(CURDIR)/$(B) PYTHON=$(PYTHON) tests/bench/run $(BENCH)

FORMATTED = $(shell git ls-files '*.c' '*.h')
format:
	clang-format -i $(FORMATTED)
format-check:
	clang-format --dry-run -Werror $(FORMATTED)
lint: format-check
	scripts/check-includes
	shellcheck -x $$(git grep -lE '^#!.*(bash|/sh)' -- scripts tests .ci)

install: all
	install -D -m755 $(B)/pyperf $(DESTDIR)$(PREFIX)/bin/pyperf
	for m in cmd/man/*.1; do install -D -m644 $$m $(DESTDIR)$(PREFIX)/share/man/man1/$$(basename $$m) || exit 1; done
	install -D -m644 cmd/completion/pyperf.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/pyperf
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/pyperf $(DESTDIR)$(PREFIX)/share/bash-completion/completions/pyperf
	for m in cmd/man/*.1; do rm -f $(DESTDIR)$(PREFIX)/share/man/man1/$$(basename $$m); done

clean:
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
