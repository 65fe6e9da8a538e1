"""Reads any file that holds gates into `Settings`; the hook takes the compiled form instead."""

from __future__ import annotations

import os

from notyet.config.document import BadSyntax
from notyet.config.mistakes import Mistake
from notyet.config.native import read_native
from notyet.config.schema import examine
from notyet.config.settings import Settings
from notyet.core.command import Command
from notyet.core.gate import Gate, Match, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.config.schema import Examined, FormatName

    Path = tuple[str | int, ...]

_HOOKS: dict[str, tuple[str, FormatName]] = {
    "claude": ("claude", "hooks"),
    "codex": ("codex", "hooks"),
    "codex-toml": ("codex", "hooks-toml"),
    "mux": ("mux", "hooks"),
}
_EXECUTABLES = {"mux-stop": "agent", "mux-subagent-stop": "subagent"}


def compile_text(text: str, path: str, kind: str) -> Settings:
    """Return what a file of this kind says, with every mistake in it."""
    if kind in _EXECUTABLES:
        return _executable(path, kind)
    if kind == "conclaude":
        return _conclaude(text, path)
    if kind in _HOOKS:
        return _hooks(text, path, *_HOOKS[kind])
    settings = read_native(text, path)
    return _with_openclaw(settings) if settings.openclaw else settings


def _hooks(text: str, path: str, speaks: str, form: FormatName) -> Settings:
    from notyet.dialects.hooks_block import gates

    examined = examine(text, path, form)
    mistakes = list(examined.mistakes)

    def complain(where: Path, message: str) -> None:
        mistakes.append(_mistake(examined, path, where, message))

    found = gates(speaks, examined.value, path, lambda where: _line(examined, where), complain)
    return Settings(file=path, gates=tuple(found), mistakes=tuple(mistakes))


def _conclaude(text: str, path: str) -> Settings:
    from notyet.dialects.conclaude import gates

    examined = examine(text, path, "conclaude")
    found = gates(examined.value, path, lambda where: _line(examined, where))
    return Settings(
        file=path,
        gates=tuple(found),
        notifications=examined.value.get("notifications") or {},
        mistakes=examined.mistakes,
    )


def _executable(path: str, kind: str) -> Settings:
    """Return the gate for Mux's `.mux/stop`: it is run itself, by a shell that can (J3)."""
    if not os.access(path, os.X_OK):
        hint = f"run chmod +x {os.path.basename(path)}"
        mistake = Mistake(file=path, message="it is not executable, so it is not run", hint=hint)
        return Settings(file=path, mistakes=(mistake,))
    gate = Gate(
        name=f"mux {os.path.relpath(path, os.path.dirname(os.path.dirname(path)))}",
        # bash runs a file without a first line that names its interpreter, as hosts do.
        check=Command(argv=("bash", "-c", 'exec "$0"', path), speaks="mux"),
        match=Match(events=(_EXECUTABLES[kind],)),  # type: ignore[arg-type]  # a scope
        timeout=10.0,
        source=Source(path, 1),
    )
    return Settings(file=path, gates=(gate,))


def _with_openclaw(settings: Settings) -> Settings:
    """Take the limit of steer-restarts from OpenClaw's own file (J9)."""
    from notyet.config.read_file import read_file
    from notyet.config.read_json import read
    from notyet.core.record import replace

    text, mistake = read_file(settings.openclaw)
    value: Any = None
    if text is not None:
        try:
            value = read(text).value
        except BadSyntax as error:
            mistake = Mistake(
                file=settings.openclaw,
                line=error.line,
                column=error.column,
                message=error.message,
                hint=error.hint,
            )
    for key in ("agents", "defaults", "subagents", "maxSteerRestarts"):
        value = value.get(key) if isinstance(value, dict) else None
    limits = dict(settings.limits)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        limits.setdefault("max_blocks", value)
    elif mistake is None:
        where = "agents.defaults.subagents.maxSteerRestarts"
        mistake = Mistake(file=settings.openclaw, message=f"it has no whole number at {where}")
    mistakes = settings.mistakes if mistake is None else (*settings.mistakes, mistake)
    return replace(settings, limits=limits, mistakes=mistakes)


def _line(examined: Examined, where: Path) -> int:
    return examined.document.locate(where)[0] if examined.document else 0


def _mistake(examined: Examined, file: str, where: Path, message: str) -> Mistake:
    line, column = examined.document.locate(where) if examined.document else (0, 0)
    return Mistake(file=file, line=line, column=column, message=message)
