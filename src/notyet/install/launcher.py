"""The launcher: the file that hosts start at every event, and the pack that it takes modules from.

It is source, and a few lines only: they are compiled each time, but by whichever Python is there.
What it cannot find in the pack it imports from the folder that notyet was installed in.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from contextlib import suppress

from notyet.config.read_file import read_file
from notyet.core.text import visible
from notyet.homes import home_folder
from notyet.install.packing import HEAD, SIGN, Package, is_current
from notyet.install.replacing import write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "launch.py"
_FLAGS = ("-I", "-S")
# Every line costs each stop a little: it is compiled each time.
_TEXT = """\
# For hosts to start at every event. Written by `notyet install`, which also renews it.
import sys, gc, marshal, posix
from _frozen_importlib_external import MAGIC_NUMBER
gc.disable()  # the process lives for a moment, and what it holds is bounded
sys.path += {folders}
try:
    path = {pack!a} % sys.implementation.cache_tag
    file = posix.open(path, posix.O_NONBLOCK)
    found = posix.fstat(file)
    sign = {sign!a} % (MAGIC_NUMBER, found.st_size, found.st_mtime_ns)
    length = posix.read(file, {head}).partition(sign)[2]
    first = posix.read(file, int(length or 0))
    posix.close(file)  # its number may be that of stdin, if the host closed that
    code, rest = marshal.loads(first)
    exec(code)
    begin(path, found, *rest)
except Exception:
    pass  # without the pack, the usual import finds everything
try:
    from notyet.cli.hook import serve
except ImportError:
    posix.write(1, {reply!a})
    posix._exit(0)
posix._exit(serve(sys.argv[2:]))  # everything is written; an orderly end would only take longer
"""


def own_root() -> str:
    """Return the folder that this package lies in."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def launcher_path(folder: str) -> str:
    """Return where the launcher lies in our folder of data."""
    return os.path.join(folder, NAME)


def pack_path(folder: str, tag: str) -> str:
    """Return where the pack for a Python lies, which is known by its tag: `cpython-311`."""
    return os.path.join(folder, f"hook.{tag}.pack")


def data_folder(environ: Mapping[str, str]) -> str:
    """Return our folder below the XDG data folder; empty where there is no home."""
    home = environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(home):  # the XDG rules: a relative one is to be ignored
        own = home_folder(environ)
        home = os.path.join(own, ".local", "share") if own else ""
    return os.path.join(home, "notyet") if home else ""


def command_words(folder: str, python: str) -> list[str]:
    """Return how the launcher in a folder is started with a Python, up to `hook`."""
    return [python, *_FLAGS, launcher_path(folder)]


def words(folder: str, python: str) -> list[str]:
    """Return how hosts start the hook by the launcher, up to its options."""
    return [*command_words(folder, python), "hook"]


def text(folder: str, root: str) -> str:
    """Return the launcher for a folder of data; `root` is the one that the package lies in."""
    said = f"notyet: there is no notyet in {visible(root)} any more, so nothing was checked; "
    said += "install it, and run `notyet install` for this host again"
    return _TEXT.format(
        folders=_folders(root),
        pack=pack_path(folder.replace("%", "%%"), "%s"),
        head=HEAD,
        sign=SIGN,
        reply=json.dumps({"systemMessage": said}).encode() + b"\n",
    )


def _folders(root: str) -> str:
    """Return the code for where the package is: as now, and as a newer Python would have it."""
    now = f"/python{sys.version_info[0]}.{sys.version_info[1]}/"
    if now not in root:
        return ascii([root])
    later = root.replace("%", "%%").replace(now, "/python%d.%d/")
    return f"[{root!a}, {later!a} % sys.version_info[:2]]"


def lay(folder: str, root: str) -> None:
    """Write the launcher, and the pack for the Python that runs this. Raises OSError."""
    moment = int(time.time()) * 10**9  # every file system can keep a whole second
    write_private(pack_path(folder, _tag()), Package(root).packed(moment), moment)
    write_private(launcher_path(folder), text(folder, root).encode())


def is_laid(folder: str, root: str) -> bool:
    """Tell whether the launcher and its pack are as `lay` would write them now."""
    return is_launcher_of(folder, root) and has_pack(folder)


def is_launcher_of(folder: str, root: str) -> bool:
    """Tell whether the launcher starts the package of this folder, as this version does it."""
    return read_file(launcher_path(folder))[0] == text(folder, root)


def has_pack(folder: str) -> bool:
    """Tell whether there is a pack for the Python that runs this, of the sources as they are."""
    return is_current(pack_path(folder, _tag()))


def remove(folder: str) -> None:
    """Remove the launcher and its packs, and the folder if nothing else is in it."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        if name == NAME or (name.startswith("hook.") and name.endswith(".pack")):
            os.unlink(os.path.join(folder, name))
    with suppress(OSError):
        os.rmdir(folder)


def mentions(settings: str, launcher: str) -> bool:
    """Tell whether a settings file names a launcher; one that cannot be read may."""
    if not os.path.lexists(settings):
        return False
    known, _ = read_file(settings)
    quoted = shlex.quote(launcher)
    return known is None or any(form in known for form in (quoted, json.dumps(quoted)[1:-1]))


def _tag() -> str:
    return sys.implementation.cache_tag or "unknown"
