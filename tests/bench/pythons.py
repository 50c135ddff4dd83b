"""The part of `run` that judges every version and build of CPython here, as the live tests find them."""
import pathlib
import sys

COLUMNS = ("version and build", "lines", "stacks", "impossible", "distance", "i.i.d.", "deviations")


def parts(bench):
    """By name; `bench` is the module whose rows say which claims hold."""

    def pythons(options):
        """A row each: user samples with a Python line while Python runs; stacks, and those that cannot be;
        distance of the lines' shares to the truth beside the mean distance of independent samples of the
        truth, and by how many of their deviations it is more."""
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))
        import judge
        import live  # looks for the Pythons

        width = max(map(len, [COLUMNS[0], *live.BUILDS]))
        print(COLUMNS[0].ljust(width), *(column.rjust(11) for column in COLUMNS[1:]))
        for name, python in live.BUILDS.items():
            try:
                measured = judge.Measures(python, 500 if options.short else options.samples)
            except live.Failed as failure:
                bench.rows.append(False)
                print(name.ljust(width), "FAILS:", failure, flush=True)
                continue
            off = (measured.apart - measured.floor) / measured.deviation
            cells = (
                f"{measured.coverage:.2%}", f"{measured.edges.stacks:,}", f"{len(measured.edges.impossible)}",
                f"{measured.apart:.3%}", f"{measured.floor:.3%}", f"{off:.1f}",
            )
            holds = measured.coverage >= 0.995 and not measured.edges.impossible and off <= 3
            bench.rows.append(holds)
            print(name.ljust(width), *(cell.rjust(11) for cell in cells), "  holds" if holds else "  FAILS", flush=True)
        for version in live.missing_versions():
            print(version.ljust(width), "none here: see scripts/pythons")
        for build in live.missing_builds():
            print(build.ljust(width), "none here: see scripts/build-pythons")

    return {"pythons": pythons}
