"""What the tests of the launcher and its pack share: both laid once, and runs of them."""

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

from hook_runs import clean_environ, in_bytes
from notyet.install.launcher import launcher_path, lay, own_root

_ASK = "code = serve(sys.argv[2:])"
_OURS = """[
        n for n, m in sys.modules.items()
        if n[:6] == "notyet" and type(m.__spec__.loader).__name__ == "Pack"
    ]"""
_TELL = f"print({_OURS}, flush=True)"
_TIME = re.compile(rb"\d+\.\d s\b")


def laid(folder, root=None):
    """Lay the launcher and its pack; return the pack."""
    lay(str(folder), str(root or own_root()))
    (pack,) = Path(folder).glob("*.pack")
    return pack


def started(folder, content, *argv, python=sys.executable, **environ):
    """Start the launcher as hosts do; return how it ended, without the times in it."""
    done = subprocess.run(
        [python, "-I", "-S", launcher_path(str(folder)), "hook", *argv],
        input=in_bytes(content),
        capture_output=True,
        timeout=60,
        env=clean_environ(**environ),
    )
    return done.returncode, _TIME.sub(b"0.0 s", done.stdout), _TIME.sub(b"0.0 s", done.stderr)


def from_pack(folder, before=""):
    """Return the modules that come from the pack where nobody asks for more than the door.

    `before` is code that is run before all.
    """
    known = Path(launcher_path(str(folder))).read_text()
    assert _ASK in known
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"{before}\n{known.replace(_ASK, _TELL)}"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == b""
    return eval(done.stdout)  # noqa: S307  # a list of names, as printed there


def copy_of_package(folder):
    """Copy the package, to be changed; return the folder that it lies in."""
    source = os.path.join(own_root(), "notyet")
    copytree(source, folder / "notyet", ignore=ignore_patterns("__pycache__"))
    return folder
