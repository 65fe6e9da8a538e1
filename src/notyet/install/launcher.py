"""The launcher: the file that a host starts at every event, and the line that starts it.

Every installation of notyet has its own launcher, in a folder named after it, so upgrading or
deleting one installation does not touch what another one registered. The launcher is source of a
few lines, compiled at every start by whichever Python is there. It takes modules from the pack;
what the pack does not have is imported from the folder in which notyet is installed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from notyet.config.readers import read_file
from notyet.core.text import visible
from notyet.errors import NotyetError
from notyet.install.change import write_private_bytes
from notyet.install.notyet_line import ISOLATED, LAUNCHER, is_notyets_hook
from notyet.install.pack import HEAD, SIGN, Package, is_current

if TYPE_CHECKING:
    from collections.abc import Mapping

# Folders that a tool makes for one run, and may delete at any time. uv's have ordinary names.
_OF_UV = re.compile(r"/(archive|environments|builds)-v\d+/")
_THROWN_AWAY = (
    (_OF_UV, "uvx", "uv tool install notyet"),
    (re.compile(r"/pipx/\.cache/|/(\.cache|Caches)/pipx/"), "pipx run", "pipx install notyet"),
)
# It is compiled at every start, so every line costs a little. Whatever is missing, it prints no
# traceback and does not exit with 2, which would send an agent back.
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
    """Return the path of the launcher in a folder."""
    return os.path.join(folder, LAUNCHER)


def pack_path(folder: str, tag: str) -> str:
    """Return the path of the pack for a Python, by its tag: `cpython-311`."""
    return os.path.join(folder, f"hook.{tag}.pack")


def data_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of launchers, below the XDG data folder; empty without a home."""
    data, home = environ.get("XDG_DATA_HOME", ""), environ.get("HOME", "")
    if not os.path.isabs(data):  # the XDG specification says to ignore it
        data = os.path.join(home, ".local/share") if os.path.isabs(home) else ""
    return os.path.join(data, "notyet") if data else ""


def own_folder(environ: Mapping[str, str], root: str) -> str:
    """Return the folder of the launcher of the notyet in `root`; empty without a home."""
    folder = data_folder(environ)
    return os.path.join(folder, installation(root)) if folder else ""


def installation(root: str) -> str:
    """Return a name for the notyet in `root`, which upgrades of Python do not change."""
    before, version, behind = _parted(root)
    known = f"{before}/python/{behind}" if version else root
    return blake2b(os.fsencode(known), digest_size=6).hexdigest()


def text(folder: str, root: str) -> str:
    """Return the launcher's source, for its folder and the folder `root` of the package."""
    place = visible(root).replace("%", "%%")
    message = f"notyet: it cannot be started from {place} any more (%b), so nothing was checked; "
    message += "install it, and run `notyet install` for this host again"
    return _TEXT.format(
        folders=_folders(root),
        pack=pack_path(folder.replace("%", "%%"), "%s"),
        head=HEAD,
        sign=SIGN,
        reply=json.dumps({"systemMessage": message}).encode() + b"\n",
    )


def _folders(root: str) -> str:
    """Return the code for the folders to import from: that of the running Python, and this one."""
    before, version, behind = (part.replace("%", "%%") for part in _parted(root))
    if not version:
        return ascii([root])
    of_python = f"{before}/python%d.%d/{behind}"
    return f"[{of_python!a} % sys.version_info[:2], {root!a}]"


def _parted(root: str) -> tuple[str, str, str]:
    """Split a folder before and behind the version of Python in it; without one, all is behind."""
    return root.rpartition("/python{}.{}/".format(*sys.version_info))


def lay(folder: str, root: str) -> None:
    """Write the launcher, and the pack for the Python that runs this. Raises OSError."""
    os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
    moment = int(time.time()) * 10**9  # every file system can keep a whole second
    write_private_bytes(pack_path(folder, _tag()), Package(root).packed(moment), moment)
    write_private_bytes(launcher_path(folder), text(folder, root).encode())


def is_laid(folder: str, root: str) -> bool:
    """Return True if the launcher and its pack are as `lay` would write them now."""
    return is_launcher_of(folder, root) and has_pack(folder)


def is_launcher_of(folder: str, root: str) -> bool:
    """Return True if the launcher is that of the notyet in `root`, as this version writes it."""
    return read_file(launcher_path(folder))[0] == text(folder, root)


def has_pack(folder: str) -> bool:
    """Return True if there is a pack for the running Python, of the sources as they are."""
    return is_current(pack_path(folder, _tag()))


def remove(folder: str) -> None:
    """Remove a launcher and its packs, and the folders around them if they are empty."""
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


def may_be_used(folder: str, settings: str, project: str) -> bool:
    """Return True if a settings file names the launcher in a folder, or may do so.

    It may if it cannot be read, and if the folder of its project is gone, maybe moved.
    """
    if not os.path.lexists(settings):
        return not os.path.exists(project)
    known, _ = read_file(settings)
    quoted = shlex.quote(launcher_path(folder))
    return known is None or any(form in known for form in (quoted, json.dumps(quoted)[1:-1]))


def _tag() -> str:
    return sys.implementation.cache_tag or "unknown"


class NoCommand(NotyetError):  # noqa: N818  # named after what happened
    """There is no command that would still work tomorrow; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """The line that starts notyet, up to `hook`, and a note about it for the user."""

    line: str
    note: str = ""
    folder: str = ""  # where the launcher has to be written first; empty: there is none


def launched_start(usual: Start, folder: str, python: str) -> Start:
    """Return the start by a launcher in this folder; else the usual one, with the reason."""
    why = ""
    line = ""
    try:
        line = launched(folder, python)
    except NoCommand as error:
        why = str(error)
    if not folder:
        why = "there is no home folder to keep the launcher in; set HOME, or XDG_DATA_HOME"
    elif not why and not is_notyets_hook(f"{line} hook"):  # we would not recognise it
        why = f"{python or 'this Python'} is not a usual name for a Python"
    elif not why:
        why = _unwritable(folder)
    if why:
        note = f"hooks start slower than they could: {why}"
        return replace(usual, note="; ".join(filter(None, (usual.note, note))))
    return Start(line=line, folder=folder)


def launched(folder: str, python: str) -> str:
    """Return the line that starts the launcher in a folder, up to `hook`. Raises NoCommand.

    A Python that cannot read its file exits with 2, which would send the agent back, and a shell
    that cannot start the Python exits at once. So the line tests both; `or_gone` says what follows.
    """
    launcher = launcher_path(folder)
    line = " ".join(_quoted(word) for word in (python, *ISOLATED, launcher))
    return f"test -r {_quoted(launcher)} && test -x {_quoted(python)} && exec {line}"


def _unwritable(folder: str) -> str:
    """Return why no file can be written into a folder, which may not exist yet."""
    place = folder
    while place != "/" and not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        return f"{place} is not a folder"
    return "" if os.access(place, os.W_OK | os.X_OK) else f"{place} cannot be written"


def absolute_start(argv0: str, prefix: str, python: str, main: str) -> Start:
    """Return a start that survives upgrades of notyet and of Python. Raises NoCommand.

    That is the script by which notyet was called, with its symbolic links: pipx and uv keep
    theirs in one place.
    """
    script = os.path.abspath(argv0)
    if os.path.basename(argv0) != "notyet" or not os.access(script, os.X_OK):
        script = os.path.join(prefix, "bin", "notyet")
    for part, tool, better in _THROWN_AWAY:
        if any(_is_within(part, path) for path in (f"{prefix}/", script)):
            raise NoCommand(
                f"this is {tool}'s throw-away copy of notyet ({prefix}), which will be gone; "
                f"run `{better}`, and then this command again"
            )
    if os.path.isfile(script) and os.access(script, os.X_OK):
        return Start(line=_quoted(script))
    if not os.path.isabs(python):
        raise NoCommand(
            f"there is no {script}, and this Python does not know where it is; "
            "start notyet with a Python by its whole path, or install it"
        )
    words = (python, "-I", "-S", os.path.abspath(main))
    note = f"there is no {script}, so hooks run {words[-1]} with {python}"
    return Start(line=" ".join(_quoted(word) for word in words), note=note)


def _is_within(part: re.Pattern[str], path: str) -> bool:
    found = part.search(path)
    if found is None or part is not _OF_UV:
        return found is not None
    cache = path[: found.start()]
    return os.path.basename(cache) == "uv" or os.path.exists(os.path.join(cache, "CACHEDIR.TAG"))


def _quoted(word: str) -> str:
    try:
        word.encode()
    except UnicodeEncodeError:
        raise NoCommand(
            f"the path {os.fsencode(word)!r} is not UTF-8, so it cannot stand in a settings file; "
            "install notyet in another folder"
        ) from None
    return shlex.quote(word)
