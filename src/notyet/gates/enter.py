"""Enter a private mount namespace, and run a command in it; `baseline` runs this file by path.

In the namespace the files of a snapshot lie over the project's root, so that absolute paths,
editable installs and links between packages lead to them. The namespace ends with its processes:
nobody else sees these mounts, and nothing has to be undone.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from typing import Any

FAILED = "failed"  # the file that says why the namespace could not be entered
NO_PROGRAM = 127
_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000
# Flags of a mount that a remount must repeat, as `statvfs` and as `mount` have them.
_LOCKED = {0x2: 0x2, 0x4: 0x4, 0x8: 0x8, 0x400: 0x400, 0x800: 0x800, 0x1000: 0x200000}
_libc = ctypes.CDLL(None, use_errno=True)


def main(argv: list[str]) -> None:
    """Read the plan in a folder, mount what it says, and become the command."""
    os.chdir(argv[0])
    with open("plan.json", encoding="ascii") as file:
        plan = json.load(file)
    try:
        enter()
        mount_all(plan)
    except OSError as error:
        with open(FAILED, "w", encoding="utf-8", errors="replace") as file:
            file.write(str(error))
        sys.exit(NO_PROGRAM)
    os.chdir(plan["dir"])
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and children would too
        signal.signal(number, signal.SIG_DFL)
    try:
        environ = {**os.environ, "PWD": plan["dir"]}
        os.execvpe(plan["argv"][0], plan["argv"], environ)  # noqa: S606  # the user's own command
    except OSError as error:
        sys.stderr.write(f"{plan['argv'][0]}: {error.strerror}\n")
        sys.exit(NO_PROGRAM)


def enter() -> None:
    """Get a mount namespace; without the right to have one, in a user namespace. Raises OSError."""
    user, group = os.geteuid(), os.getegid()
    try:
        _check(_libc.unshare(_NEW_MOUNTS), "unshare")
    except OSError:
        _check(_libc.unshare(_NEW_MOUNTS | _NEW_USERS), "unshare")
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    mount(None, "/", _RECURSIVE | _PRIVATE)


def mount_all(plan: dict[str, Any]) -> None:
    """Mount the snapshot over the root, then what it shares with it. Raises OSError.

    The current folder holds the places of the mounts, so that no option names a path.
    """
    root = plan["root"]
    mount(root, "original", _BIND | _RECURSIVE)
    mount("tree", root, _BIND)
    for number, path in enumerate(plan["folders"]):
        os.makedirs(f"low/{number}")
        mount(f"original/{path}", f"low/{number}", _BIND | _RECURSIVE)
        _overlay(number, f"{root}/{path}")
    for path in plan["files"]:
        mount(f"original/{path}", f"{root}/{path}", _BIND)
    mount("original/.git", f"{root}/.git", _BIND | _RECURSIVE)
    _make_read_only(f"{root}/.git")
    for folder in plan["git"]:  # of a linked work tree
        mount(folder, folder, _BIND | _RECURSIVE)
        _make_read_only(folder)


def _overlay(number: int, target: str) -> None:
    """Mount a folder so that writing into it does not change it, where the kernel can."""
    for name in ("up", "temporary"):
        os.makedirs(f"{name}/{number}")
    about = os.stat(f"low/{number}")
    os.chmod(f"up/{number}", about.st_mode & 0o7777)
    where = f"lowerdir=low/{number},upperdir=up/{number},workdir=temporary/{number}"
    for more in ("", ",userxattr"):
        try:
            mount("overlay", target, 0, "overlay", where + more)
        except OSError:
            continue
        return
    mount(f"low/{number}", target, _BIND | _RECURSIVE)


def _make_read_only(path: str) -> None:
    has = os.statvfs(path).f_flag
    keep = sum(flag for flag_there, flag in _LOCKED.items() if has & flag_there)
    mount(None, path, _REMOUNT | _BIND | _READ_ONLY | keep)


def mount(source: str | None, target: str, flags: int, kind: str = "", data: str = "") -> None:
    """Call mount(2). Raises OSError."""
    words = (source, target, kind)
    first, second, third = (os.fsencode(word) if word else None for word in words)
    code = _libc.mount(first, second, third, ctypes.c_ulong(flags), data.encode() or None)
    _check(code, f"mount {target}")


def _check(code: int, what: str) -> None:
    if code:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    main(sys.argv[1:])
