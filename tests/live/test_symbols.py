#!/usr/bin/env python3
"""Names of native code: inlined functions, C++ and Rust, and reports without the binaries."""
import pathlib
import re
import shutil
import subprocess

from live import PYPERF, Recording, Skip, check, run, scratch_folder, test

C = """
#include <stdio.h>
#define INLINE static inline __attribute__((always_inline))
INLINE long leaf(long x) { for (int i = 0; i < 1000; i++) x = x * 31 + (x >> 3); return x; }
INLINE long middle(long x) { return leaf(x) + 1; }
__attribute__((noinline)) long outer(long x) { return middle(x) ^ 7; }
int main(void) { long s = 1; for (int i = 0; i < 100000; i++) s = outer(s); return s == 42; }
"""
CPP = """
namespace shape {
template <typename T> struct Area {
    static __attribute__((noinline)) T grow(T x) { for (int i = 0; i < 1000; i++) x = x * 31 + (x >> 3); return x; }
};
}
int main() { long s = 1; for (int i = 0; i < 100000; i++) s = shape::Area<long>::grow(s); return s == 42; }
"""
RUST = """
mod shape {
    pub struct Area;
    impl Area {
        #[inline(never)]
        pub fn grow(mut x: u64) -> u64 { for _ in 0..1000 { x = x.wrapping_mul(31).wrapping_add(x >> 3); } x }
    }
}
fn main() { let mut s = 1; for _ in 0..100000 { s = shape::Area::grow(s); } std::process::exit((s == 42) as i32); }
"""


def build(folder, compiler, name, source, *flags):
    if not shutil.which(compiler):
        raise Skip(f"takes {compiler}")
    path = pathlib.Path(folder, name)
    path.write_text(source)
    program = path.with_suffix("")
    ran = subprocess.run([compiler, *flags, "-o", program, path], capture_output=True, text=True)
    if ran.returncode:
        raise Skip(f"{compiler} does not work: {ran.stderr.splitlines()[0]}")
    return program


def record(program):
    return Recording([program], "--python=off", "-F", "999")




@test
def inlined_functions_have_frames():
    with scratch_folder() as folder:
        recording = record(build(folder, "cc", "t.c", C, "-O2", "-g", "-fno-omit-frame-pointer"))
        want = ["leaf (inlined)", "middle (inlined)", "outer"]
        count = {"yes": 0, "all": 0}
        for sample in recording.script():
            # Without the offsets that script adds, and without the kernel's frames.
            names = [frame.name.split("+")[0] for frame in sample.frames if "[" not in frame.file]
            count["all"] += 1
            count["yes"] += names[:3] == want
        check(count["all"] and count["yes"] >= 0.9 * count["all"], "expected stacks:", count)
        at = re.findall(r"(\w+) leaf \(inlined\) .*\n\s+(\w+) middle \(inlined\) .*\n\s+(\w+) outer", recording.read("script"))
        check(at and all(len(set(addresses)) == 1 for addresses in at), "one instruction:", set(at))
        folded = recording.read("export", "--format", "folded", "--no-inline")
        check("(inlined)" not in folded and "outer" in folded, folded)
        check("outer;middle (inlined);leaf (inlined)" in recording.read("export", "--format", "folded"))
        check("(inlined)" not in recording.read("report"), "a ranking is of functions")
        check("leaf (inlined)" in recording.read("report", "--inline"))


@test
def names_of_cpp():
    with scratch_folder() as folder:
        recording = record(build(folder, "c++", "t.cc", CPP, "-O2"))
        check("shape::Area<long>::grow" in recording.read("report"), recording.read("report"))


@test
def names_of_rust():
    for flags in ((), ("-C", "symbol-mangling-version=v0")):
        with scratch_folder() as folder:
            recording = record(build(folder, "rustc", "t.rs", RUST, "-O", *flags))
            report = recording.read("report")
            check("shape::Area>::grow" in report or "shape::Area::grow" in report, report)


# Another machine: another name, other binaries, another kernel.
ELSEWHERE = """
hostname elsewhere && mount --bind /dev/null /proc/kallsyms && exec "$@"
"""


@test
def report_needs_no_machine():
    with scratch_folder() as folder:
        program = build(folder, "cc", "t.c", C, "-O2", "-g", "-fno-omit-frame-pointer")
        recording = record(program)
        view = ["report", "--inline", "--percent-limit", "0"]
        report = [PYPERF, *view, "-i", recording.path]
        elsewhere = ["unshare", "--uts", "--mount", "sh", "-c", ELSEWHERE, "sh"]
        before = recording.read(*view)
        check("leaf (inlined)" in before, before)
        program.unlink()
        check(recording.read(*view) == before, "without the binary:", before)
        if subprocess.run([*elsewhere, "true"], capture_output=True).returncode:
            raise Skip("takes the right to unshare")
        after = subprocess.run([*elsewhere, *report], capture_output=True, text=True)
        check(after.stdout == before, "elsewhere:", before, after.stdout, after.stderr)
        named = [line for line in before.splitlines() if line.endswith("[kernel]")]
        return f"{len(named)} functions of the kernel"


if __name__ == "__main__":
    run(needs_lines=False)
