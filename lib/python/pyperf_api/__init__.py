"""Record a part of a program with pyperf, the sampling profiler.

    import pyperf_api

    with pyperf_api.profile("train.data", events=["cycles", "cache-misses"]):
        with pyperf_api.phase("load"):
            data = load()
        with pyperf_api.phase("train"):
            fit(data)

    @pyperf_api.profile("save.data")
    def save(): ...

`pyperf report -i train.data --phase train` then shows what ran in that phase. phase() and mark()
cost a microsecond or two, and nothing is done by them while nothing is recorded, so they may stay
in the code. In Jupyter: %load_ext pyperf_api, then %pyperf STATEMENT or %%pyperf.

Nothing of this samples: the command pyperf does, attached to this process. It is found by the
environment variable PYPERF, or by its name in PATH.
"""
from ._recording import RecordingError, mark, phase, profile

__all__ = ["RecordingError", "mark", "phase", "profile", "load_ipython_extension"]


def load_ipython_extension(shell):
    from ._magic import PyperfMagics

    shell.register_magics(PyperfMagics)
