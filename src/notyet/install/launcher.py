"""The launcher: the file that hosts start at every event, and the pack that it takes modules from.

Every installation of notyet has its own, in a folder named after it, so that what one registered
is no matter of another: neither its upgrades nor its end.
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
from hashlib import blake2b

from notyet.config.readers import read_file
from notyet.core.text import visible
from notyet.hosts.own_line import LAUNCHER
from notyet.install.packing import HEAD, SIGN, Package, is_current
from notyet.install.replacing import write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_FLAGS = ("-I", "-S")
# Every line costs each stop a little: it is compiled each time. Whatever becomes of what it needs,
# it neither prints a traceback nor ends with 2, by which hosts send an agent back.
_TEXT = """\
# For hosts to start at every event. Written by `notyet install`, which also renews it.
import sys, gc, posix
gc.disable()  # the process lives for a moment, and what it holds is bounded
sys.path += {folders}
try:
    import marshal
    from _frozen_importlib_external import MAGIC_NUMBER
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
code = 0
try:
    from notyet.hook.main import serve
    code = serve(sys.argv[2:])
except BaseException as error:
    posix.write(1, {reply!a} % type(error).__name__.encode())
finally:
    posix._exit(code)  # everything is written; an orderly end would only take longer
"""


def own_root() -> str:
    """Return the folder that this package lies in."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def launcher_path(folder: str) -> str:
    """Return where the launcher lies in our folder of data."""
    return os.path.join(folder, LAUNCHER)


def pack_path(folder: str, tag: str) -> str:
    """Return where the pack for a Python lies, which is known by its tag: `cpython-311`."""
    return os.path.join(folder, f"hook.{tag}.pack")


def data_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of launchers, below the XDG data folder; empty where there is no home."""
    data, home = environ.get("XDG_DATA_HOME", ""), environ.get("HOME", "")
    if not os.path.isabs(data):  # the rules say to ignore it
        data = os.path.join(home, ".local/share") if os.path.isabs(home) else ""
    return os.path.join(data, "notyet") if data else ""


def own_folder(environ: Mapping[str, str], root: str) -> str:
    """Return the folder of the launcher of the notyet that lies in `root`; empty without home."""
    folder = data_folder(environ)
    return os.path.join(folder, installation(root)) if folder else ""


def installation(root: str) -> str:
    """Return a name for the notyet that lies in a folder; upgrades of Python do not change it."""
    before, version, behind = _parted(root)
    known = f"{before}/python/{behind}" if version else root
    return blake2b(os.fsencode(known), digest_size=6).hexdigest()


def command_words(folder: str, python: str) -> list[str]:
    """Return how the launcher in a folder is started with a Python, up to `hook`."""
    return [python, *_FLAGS, launcher_path(folder)]


def words(folder: str, python: str) -> list[str]:
    """Return how hosts start the hook by the launcher, up to its options."""
    return [*command_words(folder, python), "hook"]


def text(folder: str, root: str) -> str:
    """Return the launcher for a folder of data; `root` is the one that the package lies in."""
    place = visible(root).replace("%", "%%")
    said = f"notyet: it cannot be started from {place} any more (%b), so nothing was checked; "
    said += "install it, and run `notyet install` for this host again"
    return _TEXT.format(
        folders=_folders(root),
        pack=pack_path(folder.replace("%", "%%"), "%s"),
        head=HEAD,
        sign=SIGN,
        reply=json.dumps({"systemMessage": said}).encode() + b"\n",
    )


def _folders(root: str) -> str:
    """Return the code for where the package is: where the Python that runs has its own, or here."""
    before, version, behind = (part.replace("%", "%%") for part in _parted(root))
    if not version:
        return ascii([root])
    of_python = f"{before}/python%d.%d/{behind}"
    return f"[{of_python!a} % sys.version_info[:2], {root!a}]"


def _parted(root: str) -> tuple[str, str, str]:
    """Part a folder before and behind the version of Python in it; without one all is behind."""
    return root.rpartition("/python{}.{}/".format(*sys.version_info))


def lay(folder: str, root: str) -> None:
    """Write the launcher, and the pack for the Python that runs this. Raises OSError."""
    os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
    moment = int(time.time()) * 10**9  # every file system can keep a whole second
    write_private(pack_path(folder, _tag()), Package(root).packed(moment), moment)
    write_private(launcher_path(folder), text(folder, root).encode())


def is_laid(folder: str, root: str) -> bool:
    """Tell whether the launcher and its pack are as `lay` would write them now."""
    return is_launcher_of(folder, root) and has_pack(folder)


def is_launcher_of(folder: str, root: str) -> bool:
    """Tell whether the launcher is that of the notyet in `root`, as this version writes it."""
    return read_file(launcher_path(folder))[0] == text(folder, root)


def has_pack(folder: str) -> bool:
    """Tell whether there is a pack for the Python that runs this, of the sources as they are."""
    return is_current(pack_path(folder, _tag()))


def remove(folder: str) -> None:
    """Remove a launcher and its packs, and the folders around if nothing else is in them."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        if name == LAUNCHER or (name.startswith("hook.") and name.endswith(".pack")):
            os.unlink(os.path.join(folder, name))
    with suppress(OSError):
        os.rmdir(folder)
        os.rmdir(os.path.dirname(folder))


def may_be_used(folder: str, settings: str) -> bool:
    """Tell whether a settings file names the launcher in a folder, or may do so.

    It may if it cannot be read, and if the folder of its project is gone, which may lie elsewhere.
    """
    if not os.path.lexists(settings):
        return not os.path.exists(os.path.dirname(os.path.dirname(settings)))
    known, _ = read_file(settings)
    quoted = shlex.quote(launcher_path(folder))
    return known is None or any(form in known for form in (quoted, json.dumps(quoted)[1:-1]))


def _tag() -> str:
    return sys.implementation.cache_tag or "unknown"
