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
`after = 0.5` a success follows half a second later; `{ hang = true }` waits until it is aborted;
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
from notyet.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Literal

    After = Literal["repeat", "error"]
    Kinds = tuple[type, ...]


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
        *folders, name = self.path.split("/")
        if name in {"", ".", ".."} or ".." in folders or folders[:1] == [""] or "\0" in name:
            raise ValueError(f"write must be the path of a file below the folder: {self.path!r}")


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


_TEXT = (str,)
_COUNT = (int,)
_SECONDS = (int, float)
_FLAG = (bool,)
_LIST = (list,)
_TABLE = (dict,)
# The keys of each step, with its field and the types of its values; the first key names the step.
_STEPS: dict[type, dict[str, tuple[str, Kinds]]] = {
    Say: {"say": ("text", _TEXT)},
    Tool: {"tool": ("name", _TEXT), "input": ("input", _TABLE), "run": ("run", (str, list))},
    Write: {"write": ("path", _TEXT), "text": ("text", _TEXT)},
    Wait: {"wait": ("seconds", _SECONDS)},
    Hang: {"hang": ("", _FLAG)},
    Fail: {"fail": ("error", _TEXT), "recover": ("recover", _TEXT), "after": ("after", _SECONDS)},
    Garbage: {"garbage": ("length", _COUNT)},
}
_NAMES = {next(iter(keys)): kind for kind, keys in _STEPS.items()}
_STOPS = ("end_turn", "max_tokens", "max_turns", "refusal")
_FIGURES = ("input", "output", "cache_read", "cache_write", "total")
_WORDS = {
    _TEXT: "text",
    _COUNT: "a whole number from 0 on",
    _SECONDS: "a number of seconds",
    _FLAG: "true or false",
    _LIST: "a list",
    _TABLE: "a table",
    (str, list): "text or a list",
}


def read_script(path: str) -> Script:
    """Read a script from a TOML file. Raises Refused, with the file and what is wrong in it."""
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise Refused(f"the script {path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"the script {path} is not TOML: {error}") from None
    return script_from(content, path)


def script_from(content: Mapping[str, Any], where: str) -> Script:
    """Make a script of the plain values in a file or a `ref`. Raises Refused."""
    keys = {"turn": _LIST, "after": _TEXT, "model": _TEXT, "forgetful": _FLAG}
    values = _checked(content, where, keys)
    _one_of(values, "after", ("repeat", "error"), where)
    turns = values.pop("turn", [])
    if not turns:
        raise Refused(f"{where}: there is no [[turn]]; write one")
    scenes = (_scene(turn, f"{where}, turn {n}") for n, turn in enumerate(turns, 1))
    return Script(turns=tuple(scenes), **values)


def _scene(content: object, where: str) -> Scene:
    keys = {"steps": _LIST, "say": _TEXT, "usage": _TABLE, "refuse": _COUNT, "stop": _TEXT}
    values = _checked(content, where, keys)
    _one_of(values, "stop", _STOPS, where)
    steps = [_step(step, f"{where}, step {n}") for n, step in enumerate(values.get("steps", []), 1)]
    if "say" in values:
        steps.append(Say(values["say"]))
    usage = _checked(values.get("usage", {}), f"{where}, usage", dict.fromkeys(_FIGURES, _COUNT))
    usage.setdefault("total", sum(usage.values()))
    return Scene(
        steps=tuple(steps),
        usage=Usage(**usage),
        refuse=values.get("refuse", 0),
        stop_reason=values.get("stop", "end_turn"),
    )


def _step(content: object, where: str) -> Step:
    names = [name for name in _table(content, where) if name in _NAMES]
    if len(names) != 1:
        found = f"it has {' and '.join(names)}" if names else "it has none"
        raise Refused(f"{where}: a step does one of {', '.join(_NAMES)}; {found}")
    kind = _NAMES[names[0]]
    fields = _STEPS[kind]
    values = _checked(content, where, {key: kinds for key, (_, kinds) in fields.items()})
    if isinstance(values.get("run"), list):
        values["run"] = tuple(map(str, values["run"]))
    try:
        json.dumps(values, allow_nan=False)  # a TOML date, for example, cannot be reopened
        step: Step = kind(**{fields[key][0]: values[key] for key in values if fields[key][0]})
    except (TypeError, ValueError) as error:
        raise Refused(f"{where}: {error}") from None
    return step


def _checked(content: object, where: str, keys: Mapping[str, Kinds]) -> dict[str, Any]:
    """Return the values of a table. Raises Refused for an unknown key or a wrong type."""
    table = _table(content, where)
    for key, value in table.items():
        if key not in keys:
            hint = did_you_mean(key, list(keys)) or f"it knows {', '.join(keys)}"
            raise Refused(f"{where}: {key} is unknown; {hint}")
        kinds = keys[key]
        is_right = isinstance(value, kinds) and (kinds == _FLAG or not isinstance(value, bool))
        if isinstance(value, int | float):
            is_right = is_right and 0 <= value < float("inf")
        if not is_right:
            raise Refused(f"{where}: {key} must be {_WORDS[kinds]}, not {value!r}")
    return table


def _table(content: object, where: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise Refused(f"{where}: must be a table, not {type(content).__name__}")
    return dict(content)


def _one_of(values: Mapping[str, Any], key: str, words: tuple[str, ...], where: str) -> None:
    if key in values and values[key] not in words:
        raise Refused(f"{where}: {key} must be one of {', '.join(words)}, not {values[key]!r}")


def plain(script: Script) -> dict[str, Any]:
    """Return a script as plain values, for `script_from`."""
    turns = []
    for scene in script.turns:
        usage = {name: value for name, value in scene.usage.__dict__.items() if value}
        steps = [_plain_step(step) for step in scene.steps]
        turn = {"steps": steps, "usage": usage, "refuse": scene.refuse, "stop": scene.stop_reason}
        turns.append(turn)
    out = {"turn": turns, "after": script.after, "forgetful": script.forgetful}
    return out | ({"model": script.model} if script.model is not None else {})


def _plain_step(step: Step) -> dict[str, Any]:
    values = {
        key: getattr(step, field) if field else True
        for key, (field, _) in _STEPS[type(step)].items()
    }
    if isinstance(step, Tool):
        run = step.run if isinstance(step.run, str) else list(step.run)
        values |= {"input": dict(step.input), "run": run}
    return {key: value for key, value in values.items() if value is not None}
