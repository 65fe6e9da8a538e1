"""Explain why a command cannot be started."""

from __future__ import annotations

import errno

from notyet import light

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class CannotStart(ValueError):  # noqa: N818  # named after what happened
    """A command cannot be started; its text is the reason, for a person."""


def no_folder(folder: str) -> CannotStart:
    """Return why a command cannot run in a folder."""
    name = f"the folder to run in, {folder!r},"
    if unreached := _unreached(folder, name):
        return unreached
    if not light.isdir(folder):
        return CannotStart(f"{name} is not a folder")
    return CannotStart(f"{name} may not be entered")


def no_program(argv: Sequence[str], folder: str, places: Sequence[str]) -> CannotStart:
    """Return why none of the `places`, seen from a folder, has a program to run."""
    if not argv:
        return CannotStart("there is nothing to run: the command is empty")
    program = argv[0]
    if "/" in program:
        found = light.join(folder, program)
        return _unreached(found, f"the program {program!r}") or _not_executable(found)
    for place in places if program else ():
        found = light.join(folder, place, program)
        if light.isfile(found):
            return _not_executable(found)
    return CannotStart(f"the program {program!r} was not found on the PATH")


def reason(error: OSError | ValueError, program: str) -> str:
    """Return why a program did not start, from our own check or the system's error."""
    if isinstance(error, CannotStart):
        return str(error)
    if isinstance(error, ValueError):
        return f"the command, its folder or its environment cannot be passed on: {error}"
    if error.errno == errno.E2BIG:
        return (
            f"its arguments and environment are too long for this system to start {program!r}; "
            "pass long texts in a file"
        )
    if error.errno in {errno.EAGAIN, errno.ENOMEM}:
        return f"the system has no room for another process, so {program!r} did not start"
    if error.errno == errno.ENOEXEC:
        return f"{program!r} is not a program that this machine can run"
    return f"{program!r} could not be started: {error.strerror}"


def _unreached(path: str, name: str) -> CannotStart | None:
    try:
        light.stat(path)
    except FileNotFoundError:
        return CannotStart(f"{name} does not exist")
    except OSError as error:
        return CannotStart(f"{name} cannot be reached: {error.strerror}")
    return None


def _not_executable(path: str) -> CannotStart:
    if light.isdir(path):
        return CannotStart(f"{path!r} is a folder, not a program")
    return CannotStart(f"{path!r} is not executable; chmod +x makes it so")
