"""The script of a scripted agent: records for Python, or a small TOML file.

    model = "scripted/one"        # all of this is optional
    after = "repeat"              # what follows the last turn: "repeat" it, or an "error"
    forgetful = false             # true: it cannot say which prompts arrived

    [[turn]]
    say = "Done!"                 # a turn that only answers

    [[turn]]                      # a turn of several steps, in this order
    usage = { input = 900, output = 40, cache_read = 0, cache_write = 0 }
    steps = [
      { tool = "bash", input = { script = "make test" }, run = "make test" },
      { write = "src/shop.py", text = "total = sum" },
      { wait = 0.2 },
      { say = "The tests pass now." },
    ]

Other steps: `{ fail = "overloaded" }` ends the turn in an error, and with `recover = "text"` and
`after = 0.5` a success is told half a second later; `{ hang = true }` waits until it is aborted;
`{ garbage = 2000 }` says so many characters that no terminal should see. `refuse = 2` on a turn
makes the first two attempts to send its prompt fail. A turn without `say` has an empty answer.
"""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

from notyet.config.document import did_you_mean
from notyet.core.event import Usage
from notyet.core.record import Record
from notyet.core.text import bounded
from notyet.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    After = Literal["repeat", "error"]

SECONDS = (int, float)
_MOST = 2**53  # above it, numbers are mistakes
_LONGEST_SHOWN = 200


class Say(Record):
    """The agent says something; the last text of a turn is its answer."""

    text: str


class Tool(Record):
    """The agent calls a tool; a command or a function of that name really runs."""

    name: str
    input: Mapping[str, Any] = {}
    run: str | tuple[str, ...] = ()  # a script for the shell, or a program with its arguments


class Write(Record):
    """The agent writes a file, below its folder."""

    path: str
    text: str = ""

    def _validate(self) -> None:
        parts = self.path.split("/")
        if (
            self.path.startswith("/")
            or ".." in parts
            or "\0" in self.path
            or parts[-1] in ("", ".")
        ):
            raise ValueError(
                f"write must be the path of a file below the folder, not {self.path!r}"
            )


class Wait(Record):
    """Time passes."""

    seconds: float


class Hang(Record):
    """Nothing more happens until the turn is aborted."""


class Fail(Record):
    """The turn ends in an error; with `recover`, a success with that text follows out of band."""

    error: str
    recover: str | None = None
    after: float = 0.0  # seconds until then


class Garbage(Record):
    """The agent prints escapes, control characters and half characters."""

    length: int = 1000


class Scene(Record, kw_only=True):
    """One turn."""

    steps: tuple[Step, ...] = ()
    usage: Usage = Usage()
    refuse: int = 0  # so many attempts to send its prompt fail
    stop_reason: Literal["end_turn", "max_tokens", "max_turns", "refusal"] = "end_turn"


class Script(Record, kw_only=True):
    """What an agent does, turn by turn."""

    turns: tuple[Scene, ...]
    after: After = "repeat"
    model: str | None = None
    forgetful: bool = False

    def _validate(self) -> None:
        if not self.turns:
            raise ValueError("a script has at least one turn")

    @classmethod
    def saying(cls, *answers: str) -> Script:
        """Return a script whose agent answers, and does nothing else."""
        return cls(turns=tuple(Scene(steps=(Say(answer),)) for answer in answers))

    def scene(self, number: int) -> Scene | None:
        """Return a turn, counted from 0; None after the last one."""
        if number < len(self.turns):
            return self.turns[number]
        return self.turns[-1] if self.after == "repeat" else None


Step = Say | Tool | Write | Wait | Hang | Fail | Garbage


def read_script(path: str) -> Script:
    """Read a script from a TOML file. Raises Refused, with the file and what is wrong in it."""
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise Refused(f"the script {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"the script {path} is not TOML: {error}") from None
    except RecursionError:
        raise Refused(f"the script {path} is nested too deeply; make it flatter") from None
    return script_from(content, path)


def script_from(content: Mapping[str, Any], where: str) -> Script:
    """Make a script of the plain values in a file or a `ref`."""
    top = Table(content, where)
    turns = top.get("turn", (list,), [])
    script = {
        "turns": tuple(_scene(Table(turn, f"{where}, turn {n}")) for n, turn in _counted(turns)),
        "after": top.one_of("after", ("repeat", "error"), "repeat"),
        "model": top.get("model", (str,), None),
        "forgetful": top.get("forgetful", (bool,), False),
    }
    top.close()
    if not script["turns"]:
        raise Refused(f"{where}: there is no [[turn]]; write one")
    return Script(**script)


def plain(script: Script) -> dict[str, Any]:
    """Return a script as plain values, for `script_from`."""
    turns = []
    for scene in script.turns:
        usage = {name: value for name, value in scene.usage.__dict__.items() if value}
        steps = [_PLAIN[type(step)](step) for step in scene.steps]
        turn = {"steps": steps, "usage": usage, "refuse": scene.refuse, "stop": scene.stop_reason}
        turns.append(turn)
    out = {"turn": turns, "after": script.after, "forgetful": script.forgetful}
    return out | ({"model": script.model} if script.model is not None else {})


_PLAIN: dict[type, Any] = {
    Say: lambda step: {"say": step.text},
    Tool: lambda step: (
        {"tool": step.name, "input": dict(step.input)}
        | ({"run": step.run if isinstance(step.run, str) else list(step.run)} if step.run else {})
    ),
    Write: lambda step: {"write": step.path, "text": step.text},
    Wait: lambda step: {"wait": step.seconds},
    Hang: lambda _: {"hang": True},
    Fail: lambda step: (
        {"fail": step.error, "after": step.after}
        | ({"recover": step.recover} if step.recover is not None else {})
    ),
    Garbage: lambda step: {"garbage": step.length},
}


def _scene(table: Table) -> Scene:
    steps = table.get("steps", (list,), [])
    made = [_step(Table(step, f"{table.where}, step {n}")) for n, step in _counted(steps)]
    last = table.get("say", (str,), None)
    if last is not None:
        made.append(Say(last))
    usage = Table(table.get("usage", (dict,), {}), f"{table.where}, usage")
    names = ("input", "output", "cache_read", "cache_write", "total")
    figures = {name: usage.get(name, (int,), 0) for name in names}
    usage.close()
    figures["total"] = figures["total"] or sum(figures.values())
    stops = ("end_turn", "max_tokens", "max_turns", "refusal")
    stop = table.one_of("stop", stops, "end_turn")
    refuse = table.get("refuse", (int,), 0)
    table.close()
    return Scene(steps=tuple(made), usage=Usage(**figures), refuse=refuse, stop_reason=stop)


def _step(table: Table) -> Step:
    kinds = [kind for kind in _KINDS if kind in table.left]
    if len(kinds) != 1:
        found = f"it has {' and '.join(kinds)}" if kinds else "it has none"
        raise Refused(f"{table.where}: a step does one of {', '.join(_KINDS)}; {found}")
    step: Step = _KINDS[kinds[0]](table)
    table.close()
    return step


def _tool(table: Table) -> Tool:
    run, given = table.get("run", (str, list), ()), table.get("input", (dict,), {})
    try:
        json.dumps(given, allow_nan=False)  # as all tools get theirs
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(f"{table.where}: input cannot be written as JSON: {error}") from None
    argv = run if isinstance(run, str) else tuple(map(str, run))
    return Tool(table.get("tool", (str,), ""), given, argv)


def _write(table: Table) -> Write:
    try:
        return Write(table.get("write", (str,), ""), table.get("text", (str,), ""))
    except ValueError as error:
        raise Refused(f"{table.where}: {error}") from None


def _fail(table: Table) -> Fail:
    after = float(table.get("after", SECONDS, 0.0))
    return Fail(table.get("fail", (str,), ""), table.get("recover", (str,), None), after)


def _hang(table: Table) -> Hang:
    if not table.get("hang", (bool,), True):
        raise Refused(f"{table.where}: hang is true, or is not there at all")
    return Hang()


_KINDS: dict[str, Any] = {
    "say": lambda table: Say(table.get("say", (str,), "")),
    "tool": _tool,
    "write": _write,
    "wait": lambda table: Wait(float(table.get("wait", SECONDS, 0.0))),
    "hang": _hang,
    "fail": _fail,
    "garbage": lambda table: Garbage(table.get("garbage", (int,), 1000)),
}


def _counted(values: list[Any]) -> list[tuple[int, Any]]:
    return list(enumerate(values, 1))


class Table:
    """A table of the file: each key is taken once, and a key left over is an error."""

    def __init__(self, content: object, where: str) -> None:
        if not isinstance(content, dict):
            raise Refused(f"{where}: must be a table, not {type(content).__name__}")
        self.left = dict(content)
        self.where = where
        self._known: list[str] = []

    def get(self, key: str, kinds: tuple[type, ...], default: Any) -> Any:
        """Take a value of one of these kinds."""
        self._known.append(key)
        if key not in self.left:
            return default
        value = self.left.pop(key)
        is_odd = isinstance(value, bool) and bool not in kinds
        is_odd = is_odd or (isinstance(value, SECONDS) and not 0 <= value < _MOST)
        if not isinstance(value, kinds) or is_odd:
            wanted = " or ".join(_WORDS[kind] for kind in kinds)
            raise Refused(f"{self.where}: {key} must be {wanted}, not {_shown(value)}")
        return value

    def one_of(self, key: str, words: tuple[str, ...], default: str) -> Any:
        """Take one of a few words."""
        value = self.get(key, (str,), default)
        if value not in words:
            raise Refused(f"{self.where}: {key} must be one of {', '.join(words)}, not {value!r}")
        return value

    def close(self) -> None:
        """Raise Refused for a key that was not taken."""
        if self.left:
            key = min(self.left)
            hint = did_you_mean(key, self._known) or f"it knows {', '.join(self._known)}"
            raise Refused(f"{self.where}: {key} is unknown; {hint}")


_WORDS = {
    str: "text",
    int: "a whole number from 0 on",
    float: "a number of seconds",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


def _shown(value: object) -> str:
    try:
        return bounded(repr(value), _LONGEST_SHOWN)
    except (ValueError, RecursionError):  # a number of thousands of digits; a deep table
        return f"this {type(value).__name__}"
