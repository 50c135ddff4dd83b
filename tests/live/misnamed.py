"""CPythons whose file's name, which is all that tells the version before 3.11, is another version's."""
import os
import shutil
import subprocess

import live

# Versions whose tables differ in where the key is alone, so that frames must be walked to tell.
ALIKE = {(3, 8): (3, 9), (3, 9): (3, 8)}


class Misnamed:
    """A copy of a shared libpython, maybe stripped, under that other version's name, or rightly under its
    own; `command` runs it."""

    def __init__(self, folder, strip=False, rightly=False):
        found = {version: p for p in live.BUILDS.values() if not p.root and (version := live.version_of(p)) in ALIKE}
        if not found:
            raise live.Skip("no CPython 3.8 or 3.9")
        version, python = found.popitem()
        name = "libpython{}.{}.so.1.0"
        where = live.python_says(python, "import sysconfig as s; print(s.get_config_var('LIBDIR'))")
        library = f"{where}/{name.format(*version)}"
        if not os.path.exists(library) or not shutil.which("strip"):
            raise live.Skip("no shared libpython of that version, or no strip")
        self.copy = f"{folder}/{name.format(*version if rightly else ALIKE[version])}"
        subprocess.run(["strip", "-o", self.copy, library] if strip else ["cp", library, self.copy], check=True)
        # Not for pyperf itself, which may have been built with a sanitizer.
        self.command = ["env", f"LD_PRELOAD={self.copy}", python]
