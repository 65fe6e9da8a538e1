"""Real sessions as text for the how-to pages: what a person types, and what is answered.

The place has a short name of the same length as the one that is shown instead, so that every line
looks as it would look there.
"""

from __future__ import annotations

import itertools
import os
import pty
import re
import secrets
import select
import shutil
import subprocess
import textwrap
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clients.claude_code.driver import ClaudeCode
from clients.codex.driver import Codex
from clients.copilot.driver import CopilotCli
from clients.droid.driver import Droid
from clients.gemini.driver import GeminiCli
from clients.goose.driver import Goose
from clients.hermes.driver import Hermes
from clients.kimi.driver import KimiCode
from clients.model.script import Run, Say, Write
from clients.model.server import ModelServer
from clients.opencode.driver import OpenCode
from clients.openhands.driver import OpenHands
from clients.pi.driver import Pi
from clients.programs import (
    CLAUDE,
    CODEX,
    COPILOT,
    DROID,
    GEMINI,
    GOOSE,
    HERMES,
    KIMI,
    OPENCODE,
    OPENHANDS,
    PI,
    QWEN,
    VIBE,
    node_of,
)
from clients.qwen.driver import Qwen
from clients.runs import Ran
from clients.vibe.driver import Vibe
from clients.world import NOTYET
from notyet.hosts import host_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clients.model.script import Request, Step
    from clients.programs import Program
    from clients.world import World

SHOWN = "/home/ada"
_REAL = "/tmp/{:.4}"  # noqa: S108  # as long as the one that is shown, and readable
_WIDTH = 100
_PATIENCE = 60.0
_LONGEST_DIFF, _HEAD, _TAIL = 24, 12, 3  # lines
_ASKS = b"[y/N] "
_SEED = {
    "shop.py": "def total(prices):\n    return sum(prices)\n",
    "test_shop.py": (
        "import unittest\n\nfrom shop import total\n\n\n"
        "class Basket(unittest.TestCase):\n"
        "    def test_an_empty_basket_is_free(self):\n"
        "        self.assertEqual(total([]), 0)\n"
    ),
    "notyet.toml": (
        '[gates]\ntests = "python3 -m unittest --quiet"\n\n'
        '[gates.todo]\nrun = "! grep -n TODO *.py"\nhint = "Do it now, or say what you need."\n'
    ),
}
BEGIN = "<!-- recorded by `make record`: begin -->\n"
END = "<!-- recorded by `make record`: end -->\n"
_FORM = """
With {title} {version} and a model that follows a script, on a terminal. Paths, times, ids and
hashes are replaced, and long changes are cut; nothing else is.

```console
{typed}
```

The same run, as the model saw it:

```text
{seen}
```

"""
PROMPT = "Write discount(price, percent) in shop.py."
_BEGIN = "printf 'def discount(price, percent):\\n    return price  # TODO percent\\n' >> shop.py"
_FINISH = "sed -i 's/return price .*/return price - price * percent \\/ 100/' shop.py"
SCRIPT: tuple[Step, ...] = (
    Run(_BEGIN),
    Say("Done! discount() is in shop.py."),
    Run(_FINISH),
    Say("discount() takes the percentage off now, and no TODO is left."),
)
# Qwen Code makes an edit of `sed -i`, and refuses it if the agent has not read the file.
_WITH_PERL = (*SCRIPT[:2], Run(_FINISH.replace("sed -i", "perl -pi -e")), *SCRIPT[3:])
_CODE = _SEED["shop.py"] + "def discount(price, percent):\n    return price{}\n"
_WITH_EDITS = (  # Hermes runs hooks after its own edits only
    Write("shop.py", _CODE.format("  # TODO percent")),
    SCRIPT[1],
    Write("shop.py", _CODE.format(" - price * percent / 100")),
    SCRIPT[3],
)
# What is different every time.
_MASKS = {
    r"ledger\.db \(\d[^)]*\)": "ledger.db (180 kB)",
    r"(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b": (
        "0199f3c2-7a51-7d10-9c55-2f6d1c0a8e41"
    ),
    r"\b\d+\.\d+ ?s\b": "0.1 s",
    r"\bin \d+ms\b": "in 4ms",
    r"\b\d{8}T\d{6}\.\d+": "20260105T101500.000000001",
    r"/\S*/[a-z]+ -lc ": "/bin/bash -lc ",  # the shell of whoever records
    r"sha256:[0-9a-f]{64}": "sha256:47a7...",
    # Which Python is whose, and the folder of its launcher.
    r"\S+/python[\d.]* (-I -S|&& exec) ": r"/home/ada/.local/share/uv/tools/notyet/bin/python \1 ",
    r"notyet plugin [0-9a-f]{16}:": "notyet plugin 8d35607b69808f8b:",
    r"127\.0\.0\.1:\d+": "127.0.0.1:8080",  # the model
    r"/notyet/[0-9a-f]{12}/": "/notyet/9d41c07be2f6/",
    r"\x1b\[[?<\d;]*[a-zA-Z]": "",
    r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)": "",  # as the title of the window
    # A row of `notyet log`, and the ids of goose and Hermes, which are dates.
    r"(?m)^( *\d+  )\d\d:\d\d:\d\d  ": r"\g<1>10:15:00  ",
    r"(?m)^( *\d+  10:15:00  (?:goose|hermes) +)\d{8} ": r"\g<1>20260105 ",
    r"(?m)^( *\d+  10:15:00  (?!goose|hermes)\w+ +)[0-9a-f]{8} ": r"\g<1>0199f3c2 ",
    r"(?m)^( *\d+  10:15:00  \w+ +ses_)[0-9a-f]{4} ": r"\g<1>0199 ",
    r"\b20\d{6}_\d\b": "20260105_1",
    r"\b20\d{6}_\d{6}_[0-9a-f]{6}\b": "20260105_101500_7a51d1",
    r"(?m)^(Duration +)\d+m?( \d+)?s$": r"\g<1>1s",  # of Copilot
    r"(?m)^\[STARTUP\] .*\n": "",  # how Gemini CLI measures itself, on a busy machine
}


class Recorder:
    """Types commands at a terminal, and keeps what is seen."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.seen: list[str] = []

    def type(self, line: str, **environ: str) -> None:
        """Run a line as a shell at a terminal does; every question is answered with y."""
        mine, theirs = pty.openpty()
        process = subprocess.Popen(
            ["/bin/sh", "-c", line],
            cwd=self.world.project,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=self.world.environ | {"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "100"} | environ,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            out = _conversation(mine)
            process.wait(_PATIENCE)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(mine)
        lines = out.decode(errors="replace").replace("\r\n", "\n").strip("\n")
        self.seen += [f"$ {line}", *([lines] if lines else [])]

    def text(self) -> str:
        """Return what was seen, without what is different every time."""
        return masked("\n".join(self.seen), self.world.folder)


def _conversation(terminal: int) -> bytes:
    """Read until the other side is closed; say yes where somebody asks."""
    out, answered = b"", 0
    while select.select([terminal], [], [], _PATIENCE)[0]:
        try:
            out += os.read(terminal, 65536)
        except OSError:  # the other side is closed
            return out
        if out.endswith(_ASKS) and len(out) > answered:
            answered = len(out)
            os.write(terminal, b"y\n")
    raise TimeoutError(out)


def masked(text: str, folder: Path) -> str:
    """Return a text without what is different every time, or for everybody."""
    text = text.replace(str(folder), SHOWN)
    for pattern, shown in _MASKS.items():
        text = re.sub(pattern, shown, text)
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(_without_long_diffs(lines)).strip()


def _without_long_diffs(lines: list[str]) -> Iterator[str]:
    """Leave out the middle of added lines that are many."""
    for added, group in itertools.groupby(lines, lambda line: line.startswith("  +")):
        found = list(group)
        if added and len(found) > _LONGEST_DIFF:
            yield from found[:_HEAD]
            yield f"  [{len(found) - _HEAD - _TAIL} more lines]"
            yield from found[-_TAIL:]
        else:
            yield from found


@contextmanager
def place(kind: type[World], program: Path, wanted: Program) -> Iterator[World]:
    """Give a program a home with a project in it, under a name as long as the one shown."""
    folder = Path(_REAL.format(secrets.token_hex(2)))
    while folder.exists():
        folder = Path(_REAL.format(secrets.token_hex(2)))
    try:
        shop = type("Recorded", (_Shop, kind), {})
        yield shop(program, wanted.version, folder, node_of(wanted))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Shop:
    """A home whose project is called shop, with the programs where people have them."""

    folder: Path
    home = property(lambda self: self.folder, lambda _self, _path: None)
    project = property(lambda self: self.folder / "shop", lambda _self, _path: None)
    tmp = property(lambda self: self.folder / ".tmp", lambda _self, _path: None)
    logs = property(lambda self: self.folder / ".logs", lambda _self, _path: None)

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # of the program's own class
        bin_folder = self.home / ".local" / "bin"
        bin_folder.mkdir(parents=True)
        (bin_folder / "notyet").symlink_to(NOTYET)
        self.put_on_path(bin_folder)  # type: ignore[attr-defined]  # as above
        for name, text in _SEED.items():
            (self.project / name).write_text(text)

    @property
    def environ(self) -> dict[str, str]:
        environ: dict[str, str] = super().environ  # type: ignore[misc]  # as above
        return environ | {"PATH": f"{self.home}/.local/bin:{environ['PATH']}"}


@dataclass(frozen=True)
class Page:
    """A how-to page with a recorded session."""

    path: Path
    program: Program
    kind: type[World]
    lines: tuple[str, ...]  # what a person types
    run: str  # the agent
    after: tuple[str, ...] = ()
    script: tuple[Step, ...] = SCRIPT

    def block(self) -> str:
        """Return the part of the page between the marks, as it is in the file."""
        return self.path.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]

    def write(self, block: str) -> None:
        """Put another text between the marks."""
        before, rest = self.path.read_text(encoding="utf-8").split(BEGIN)
        after = rest.split(END)[1]
        self.path.write_text(f"{before}{BEGIN}{block}{END}{after}", encoding="utf-8")

    def recorded(self, program: Path) -> str:
        """Record the session; return the text for the page."""
        with place(self.kind, program, self.program) as world:
            recorder = Recorder(world)
            with ModelServer(world.WIRE, [*self.script]) as model:
                world.point_at(model.url)
                for line in self.lines:
                    recorder.type(line)
                recorder.type(self.run, **world.variables(model.url))
                for line in self.after:
                    recorder.type(line)
            world.runs.append(Ran("", 0, "", "", model))
            world.check()
            told = "\n".join(_as_the_model_saw_it(world, model.requests))
            seen = masked(told, world.folder)
        return _FORM.format(
            title=host_named(self.kind.HOST).title,
            version=self.program.version,
            typed=recorder.text(),
            seen=seen,
        )


def _as_the_model_saw_it(world: World, requests: list[Request]) -> Iterator[str]:
    yield from _said("user", PROMPT)
    for request in requests:
        for prompt in world.WIRE.prompts(request.news):
            yield from _said("hook", prompt)
        step = request.step
        if isinstance(step, Run):
            yield from _said("model", f"(runs) {step.command}")
        elif isinstance(step, Write):
            yield from _said("model", f"(writes {step.path})\n{step.text}")
        elif isinstance(step, Say):
            yield from _said("model", step.text)


def _said(who: str, text: str) -> Iterator[str]:
    lead = f"{who:<7}"
    for line in text.splitlines():
        wrapped = textwrap.wrap(line, _WIDTH, break_long_words=False, drop_whitespace=True)
        for part in wrapped or [""]:
            yield (lead + part).rstrip()
            lead = " " * 7


def _page(program: Program, kind: type[World], run: str, script: tuple[Step, ...] = SCRIPT) -> Page:
    """Return the page of a host that is used as most are."""
    name = kind.HOST
    lines = (f"notyet install {name}", f"notyet status {name}")
    return Page(_HOW_TO / f"{name}.md", program, kind, lines, run, ("notyet log",), script)


_HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
PAGES = {
    "claude-code": Page(
        _HOW_TO / "claude-code.md",
        CLAUDE,
        ClaudeCode,
        ("cat notyet.toml", "notyet install claude", "notyet status claude"),
        f'claude -p "{PROMPT}" --allowedTools Bash',
    ),
    "codex": Page(
        _HOW_TO / "codex.md",
        CODEX,
        Codex,
        (
            "notyet install codex",
            "notyet status codex",
            "notyet install codex --trust",
            "notyet status codex",
        ),
        f'codex exec "{PROMPT}"',
    ),
    "copilot": Page(
        _HOW_TO / "copilot.md",
        COPILOT,
        CopilotCli,
        ("notyet install copilot", "notyet status copilot"),
        f'copilot -p "{PROMPT}" --allow-all-tools',
    ),
    "gemini": Page(
        _HOW_TO / "gemini.md",
        GEMINI,
        GeminiCli,
        ("notyet install gemini", "notyet status gemini"),
        f'gemini --yolo -p "{PROMPT}"',
    ),
} | {
    page.path.stem: page
    for page in (
        _page(GOOSE, Goose, f'goose run -t "{PROMPT}"'),
        _page(DROID, Droid, f'droid exec --auto high "{PROMPT}"'),
        _page(KIMI, KimiCode, f'kimi -p "{PROMPT}"'),
        _page(VIBE, Vibe, f'vibe --auto-approve -p "{PROMPT}"'),
        _page(OPENCODE, OpenCode, f'opencode run "{PROMPT}"'),
        _page(PI, Pi, f'pi -p "{PROMPT}"'),
        _page(QWEN, Qwen, f'qwen --yolo -p "{PROMPT}"', _WITH_PERL),
        _page(OPENHANDS, OpenHands, f'LOG_LEVEL=ERROR agent "{PROMPT}"'),
        _page(HERMES, Hermes, f'hermes chat -q "{PROMPT}" -Q --yolo --accept-hooks', _WITH_EDITS),
    )
}
