"""Draws docs/screens and the outputs in README.md from real runs of notyet in scratch projects."""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME
from rich.text import Text

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from stories import World  # the tests are no package that is installed

ROOT = Path(__file__).resolve().parent.parent
SCREENS = ROOT / "docs" / "screens"
README = ROOT / "README.md"
AGENT = "ada"
WIDTH = 100
STYLES = {
    r"^ +\d+\.\ds": "dim",
    r"(?<=s  )\w+": "bold cyan",
    r"not yet|blocked": "bold red",
    r"may stop: passed|allowed": "bold green",
    r"^ +\|.*": "default",
}
QUOTED = re.compile(r"^ +\| +(FAILED|Hint:|\w+Error:)|^ +\| (FAILED|Hint:)")
FONTS = re.compile(r"\s*@font-face \{.*?\}(?=\s*[@.])", re.DOTALL)  # which would be fetched
# What the README shows an agent to read: the tests of a shop, of which one fails.
GATES = '[gates]\nlint = "ruff check ."\ntests = "pytest -q --tb=no"\n'
SHOP = "def total(prices):\n    return prices[0] + sum(prices[1:])\n"
TESTS = """\
from shop import total


def test_an_empty_basket_is_free():
    assert total([]) == 0


def test_prices_are_added():
    assert total([2, 3]) == 5
"""
READ = re.compile(r"^The agent would read:?\n(.*?)\n\s*Fix the cause", re.DOTALL | re.MULTILINE)
SENT_BACK = re.compile(r"(<!-- sent back: .*? -->\n```\n).*?(```\n<!-- end -->)", re.DOTALL)


def main() -> int:
    """Write all pictures, and the README with fresh outputs."""
    SCREENS.mkdir(exist_ok=True)
    for name, text in {**demo(), **screens()}.items():
        (SCREENS / name).write_text(text, encoding="utf-8")
        print(f"wrote {(SCREENS / name).relative_to(ROOT)}")
    README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def demo() -> dict[str, str]:
    """Return the picture of the README, for light and for dark pages."""
    command = [sys.executable, "-m", "notyet", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    lines = [styled(line) for line in excerpt(done.stdout.splitlines())]
    lines[:0] = [Text("$ notyet demo", style="bold"), Text("")]
    title = "notyet demo (excerpt)"
    return {
        "demo-light.svg": drawn(lines, title, is_light=True),
        "demo-dark.svg": drawn(lines, title),
    }


def screens() -> dict[str, str]:
    """Return pictures of what the main commands print, in the project of the tutorial."""
    with tempfile.TemporaryDirectory() as folder:
        world = _shop(folder)
        found = {"init": _run(world, "init", keys=b"\n")}
        shop = world.project / "shop.py"
        text = shop.read_text(encoding="utf-8")
        shop.write_text(text.replace("return ", "return 1 + "), encoding="utf-8")
        found["check"] = _run(world, "check")
        shop.write_text(text, encoding="utf-8")
        found["send-back"] = _run(world, "with", "scripted:agent.toml", "Add average().")
        found["log"] = _run(world, "log")
        found["status"] = _run(world, "status")
    return {f"{name}.svg": drawn(lines, "~/shop") for name, lines in found.items()}


def _shop(folder: str, *programs: str) -> World:
    """Return a world with the project of the tutorial, a person, and Claude Code's folder."""
    world = World(folder)
    for name in ("make", "python3", *programs):
        found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        if found is None:
            sys.exit(f"the pictures need {name}")
        (world.bin / name).symlink_to(found)
    git = world.project / ".git"
    world.project = world.home / "shop"
    shutil.copytree(ROOT / "examples" / "shop", world.project)
    shutil.move(git, world.project / ".git")
    (world.home / ".claude").mkdir()
    world.environ |= {"FORCE_COLOR": "1", "TERM": "dumb", "PROJECT": str(world.project)}
    return world


def _run(world: World, *argv: str, keys: bytes = b"") -> list[Text]:
    """Run a command at a terminal that keys are pressed on; return its lines with their colours."""
    ours, theirs = pty.openpty()
    started = subprocess.Popen(
        [world.bin / "notyet", *argv],
        cwd=world.project,
        env=world.environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    while part := _read(ours):
        seen += part
        if keys and seen.endswith(b"> "):
            os.write(ours, keys)
            keys = b""
    os.close(ours)
    started.wait(60)
    text = seen.decode().replace("\r\n", "\n").replace(str(world.home), "/home/you")
    shown = [Text.from_ansi(line) for line in text.rstrip().split("\n")]
    return [Text(f"$ notyet {shlex.join(argv)}", style="bold"), *shown]


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the program has ended
        return b""


def drawn(lines: list[Text], title: str, *, is_light: bool = False) -> str:
    """Return lines as a picture of a terminal, which fetches nothing."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(*lines, sep="\n")
    theme = DEFAULT_TERMINAL_THEME if is_light else SVG_EXPORT_THEME
    picture = console.export_svg(title=title, theme=theme, unique_id="notyet")
    return "\n".join(line.rstrip() for line in FONTS.sub("", picture).splitlines()) + "\n"


def excerpt(lines: list[str]) -> list[str]:
    """Return the lines about the agent, and of what it was told those that matter."""
    kept = []
    is_about_agent = False
    for line in lines:
        if re.match(r" +\|", line):
            if is_about_agent and QUOTED.match(line):
                kept.append(re.sub(r"(?<=: )\S*/python\d?(?= )", "python3", line))
        elif re.match(r" +\d+\.\ds", line):
            is_about_agent = re.search(rf"\b{AGENT}\b", line) is not None and "spawn" not in line
            if is_about_agent:
                kept.append(line)
    return kept


def styled(line: str) -> Text:
    """Return a line with colours, cut to the picture's width."""
    text = Text(line)
    for pattern, style in STYLES.items():
        text.highlight_regex(pattern, style)
    text.truncate(WIDTH, overflow="ellipsis")
    return text


def readme(text: str) -> str:
    """Return the README with what an agent reads that broke a test."""
    with tempfile.TemporaryDirectory() as folder:
        world = _shop(folder, "pytest", "ruff")
        shutil.rmtree(world.project / "__pycache__", ignore_errors=True)
        for name in ("test_shop.py", "agent.toml", "Makefile"):
            (world.project / name).unlink()
        (world.project / "notyet.toml").write_text(GATES)
        (world.project / "shop.py").write_text(SHOP)
        (world.project / "test_shop.py").write_text(TESTS)
        world.environ.pop("FORCE_COLOR")
        world.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        script = "notyet trust --yes > /dev/null; notyet check --as claude"
        printed = world.run(f"cd {world.project}; {script}\n")
    read = READ.search(printed)
    if read is None:
        raise ValueError(f"the agent would read nothing:\n{printed}")
    shown = textwrap.dedent(read[1]).strip("\n").replace("$PROJECT", "/home/you/shop")
    return SENT_BACK.sub(lambda found: f"{found[1]}{shown}\n{found[2]}", text)


if __name__ == "__main__":
    sys.exit(main())
