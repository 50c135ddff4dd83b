#!/usr/bin/env python3
"""Recordings of other machines and other perfs: read whole, with the counts that perf 6.1 finds.

The broken ones are read as far as they are sound, and the loss is said. Recordings that perf 6.1
refuses have no count here; pyperf must read them and find something.
"""
import functools
import json
import pathlib
import re
import shutil

import live
from live import check
from perf_reports import FOLDER, our_addresses, our_objects, perf_addresses

COUNTS = {
    "perf.data.branch-4.14": {"cycles": 13},
    "perf.data.busy.0-3.4": {
        "cycles": 67, "instructions": 127, "cache-references": 135, "cache-misses": 70, "branches": 123,
        "branch-misses": 106,
    },
    "perf.data.busy.0-3.8": {"cycles": 4},
    "perf.data.callgraph-3.4": {"cycles": 1548},
    "perf.data.ctx_switch_namespaces-4.14": {"cycles": 2},
    "perf.data.group_desc-4.14": {"cache-references": 7, "branch-misses": 6},
    "perf.data.hw_and_sw-3.4": {"cycles": 207, "cpu-clock": 4734},
    "perf.data.hybrid_topology": {"cycles": 7},  # of cpu_core and cpu_atom
    "perf.data.intel_pt-4.14": {"cycles": 15},
    "perf.data.lost_samples-4.4": {"cycles": 97, "instructions": 80, "branch": 14},
    "perf.data.piped.ctx_switch_namespaces-4.14": {"cycles": 7},
    "perf.data.piped.header_features_aligned-6.12": {"cycles": 9},
    "perf.data.piped.header_feautres_group_desc-6.8": {"cycles": 11, "instructions": 10},
    "perf.data.piped.hw_and_sw-3.4": {"cycles": 193, "cpu-clock": 4082},
    "perf.data.piped.lost_samples-4.4": {"cycles": 98, "instructions": 79, "branch": 14},
    "perf.data.piped.no_attr_ids-4.14": {"cycles": 7},
    "perf.data.proc.map.timeout-3.18": {"cycles": 8},
    "perf.data.weight_struct": {"": 14},
    "sleep.compressed.pipe.data": {"cycles": 8},
}
REFUSED_BY_PERF = ("sleep.data", "sleep.compressed.data", "sleep.compressed2.data", "sleep.compressed2.pipe.data")
BROKEN = ("perf.data.piped.corrupted.zero_size_sample-3.2", "sleep.compressed2.pipe.data")


def need(name):
    if not (FOLDER / name).exists():
        raise live.Skip(f"no recordings at {FOLDER.parent}; PYPERF_FIXTURES names their folder")
    return FOLDER / name


def report(name, **kwargs):
    ran = live.pyperf("report", "--json", "-i", "-" if kwargs else FOLDER / name, **kwargs)
    check(ran.returncode == 0, name, "ended with", ran.returncode, ran.stderr)
    return json.loads(ran.stdout), ran.stderr


def counts_of(answer):
    return {event["name"]: event["samples"] for event in answer["events"] if event["samples"]}


@live.test
def counts_are_perfs():
    for name, expected in COUNTS.items():
        need(name)
        counts = counts_of(report(name)[0])
        check(sorted(counts.values()) == sorted(expected.values()), name, "has", counts, "not", expected)
        for event, samples in expected.items():
            check(any(e.startswith(event) and n == samples for e, n in counts.items()), name, event, counts)
    return f"{len(COUNTS)} files"


@live.test
def parts_of_a_hybrid_cpu():
    """perf recorded an event for each PMU: their sum, and on request each."""
    path = need("perf.data.hybrid_topology")
    parts = ["cpu_core/cycles:ppp/", "cpu_atom/cycles:ppp/"]
    for arguments, names in (([], ["cycles:ppp"]), (["--by-pmu"], parts), (["-e", parts[0]], parts)):
        ran = live.pyperf("report", "--json", "-i", path, *arguments)
        check(ran.returncode == 0, arguments, ran.stderr)
        events = json.loads(ran.stdout)["events"]
        check([event["name"] for event in events] == names, arguments, events)
        check(sum(event["samples"] for event in events) == 7, arguments, events)


@live.test
def traces_are_said():
    ran = live.pyperf("report", "-i", need("perf.data.intel_pt-4.14"))
    check(re.search(r"^[0-9.]+ .?B of Intel PT trace are not read: `perf inject", ran.stdout, re.M), ran.stdout)


@live.test
def standard_input_is_as_good():
    for name in COUNTS:
        with open(need(name), "rb") as file:
            answer, _ = report(name, stdin=file)
        check(counts_of(answer) == counts_of(report(name)[0]), name, counts_of(answer))


@live.test
def reads_what_perf_refuses():
    totals = {}
    for name in REFUSED_BY_PERF:
        need(name)
        totals[name] = report(name)[0]["samples"]["total"]
        check(totals[name] > 0, name, "has no samples")
    return totals


@live.test
def every_view_of_every_file():
    for name in (*COUNTS, *REFUSED_BY_PERF, *BROKEN):
        path = need(name)
        for arguments in (["report"], ["report", "--csv"], ["script"], ["export", "--format", "folded"]):
            ran = live.pyperf(arguments[0], "-i", path, *arguments[1:])
            check(ran.returncode == 0, *arguments, name, "ended with", ran.returncode, ran.stderr)
            check("\x1b" not in ran.stdout, *arguments, name, "prints control characters")


@live.test
def loss_is_said():
    for name in BROKEN:
        need(name)
        _, err = report(name)
        check("damaged" in err, name, "is broken and nothing is said of it:", err)


@live.test
def cut_short_anywhere():
    """A file that ends early, at any place, is read as far as it goes and never a crash."""
    whole = need("perf.data.callgraph-3.4").read_bytes()
    with live.scratch_folder() as folder:
        path = pathlib.Path(folder, "cut")
        most = 0
        for part in range(1, 20):
            path.write_bytes(whole[: len(whole) * part // 20])
            ran = live.pyperf("report", "--json", "-i", path)
            check(ran.returncode in (0, 1), "cut at", part, "/ 20:", ran.returncode, ran.stderr)
            if ran.returncode == 0:
                check("damaged" in ran.stderr, "cut at", part, "/ 20: nothing is said of it:", ran.stderr)
                total = json.loads(ran.stdout)["samples"]["total"]
                check(total >= most, "a longer part has fewer samples:", total, most)
                most = total
        check(most > 1000, "only", most, "samples before the cut")


# perf makes samples of its own from a hardware trace.
TRACED = {"cbr", "psb", "pwr"}


@functools.lru_cache(maxsize=None)
def addresses_of_perf(name):
    """{(event, object, address): [samples, period]}"""
    found = perf_addresses(need(name))
    return {key: part for key, part in found.items() if key[0] not in TRACED or "intel_pt" not in name}


@live.test
def addresses_have_perfs_samples_and_periods():
    """Event by event, and finer than symbols, which are of machines that are not here: each address of each object."""
    if not shutil.which("perf"):
        raise live.Skip("no perf here")
    compared = 0
    for name in COUNTS:
        theirs, ours = addresses_of_perf(name), our_addresses(need(name))
        different = {key: (ours.get(key), theirs.get(key)) for key in {*ours, *theirs} if ours.get(key) != theirs.get(key)}
        check(not different, name, "ours and perf's:", different)
        compared += len(theirs)
    check(compared > 2000, "only", compared, "addresses were compared")
    return f"{compared} addresses"


@live.test
def objects_have_perfs_samples_and_periods():
    """Event by event of pyperf report: name, period in all, and each object's samples and period."""
    if not shutil.which("perf"):
        raise live.Skip("no perf here")
    compared = 0
    for name in COUNTS:
        theirs, ours = {}, our_objects(need(name))
        for (event, key, _), part in addresses_of_perf(name).items():
            have = theirs.setdefault(event, {}).setdefault(key, [0, 0])
            have[:] = map(sum, zip(have, part))
        check(set(ours) == set(theirs), name, "has the events", set(ours), "but perf's are", set(theirs))
        for event, objects in theirs.items():
            period = sum(part for _, part in objects.values())
            check(ours[event][1] == period, name, event, "period", ours[event][1], "but perf's is", period)
            # Ours are shares of a whole number, with all the digits that they have.
            check(ours[event][0] == objects, name, event, ours[event][0], "but perf's are", objects)
            compared += len(objects)
    check(compared >= 20, "only", compared, "objects were compared")
    return f"{compared} objects"


if __name__ == "__main__":
    live.run(needs_lines=False)
