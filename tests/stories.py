"""Stories of the command line: prose, commands, and what these print; told by a real shell.

Lines indented by two belong to the machine: `$ ` begins a command and `> ` goes on with it. What
follows is what it must print, stdout and stderr together, and `[N]` its exit code if that is not
0. A line that ends in ` (glob)` or ` (re)` is a pattern; ` (no-eol)` says that the last line was
not ended, and ` (printed)` that what looks like an exit code is none. All commands of a story run
in one bash, so that `cd` and variables stay. In what is printed `$PROJECT`, `$HOME` and `$BIN`
stand for the folders of the story, and `$NOTYET_FLEET` for the address of a fleet's ledger, which
only a story has that begins with the words "On PostgreSQL".
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import notyet

WRITE = "NOTYET_STORIES"
ON_POSTGRESQL = "On PostgreSQL"
PATIENCE = 90.0  # seconds for a whole story
MARK = "--- the story goes on after"
CODE = re.compile(r"\[\d+\]")
PROGRAMS = """
bash sh git env basename cat chmod cp cut date dirname echo false grep head kill ln
ls mkdir mkfifo mktemp mv od printf pwd readlink realpath rm rmdir sed seq sleep sort
stat tail tee test touch tr true uname uniq wc yes
"""
# Whoever runs the tests may be an agent; a story that is about one sets a variable.
ENTRY = """\
#!{python} -I
import sys
sys.path.insert(0, {source!r})
from notyet.config import caller
caller._ancestors = lambda _pid: ()
from notyet.cli.main import main
sys.exit(main())
"""
GIT = """\
[user]
\tname = You
\temail = you@example.com
[init]
\tdefaultBranch = main
"""


@dataclass
class Step:
    """One command, and what it must print."""

    line: int  # of the story, where it begins
    command: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)


def parsed(text):
    """Return a story as prose lines and steps, in order."""
    parts = []
    for number, line in enumerate(text.splitlines(), 1):
        step = parts[-1] if parts and isinstance(parts[-1], Step) else None
        if line.startswith("  $ "):
            parts.append(Step(number, [line[4:]]))
        elif line.startswith("  > ") and step and not step.expected:
            step.command.append(line[4:])
        elif line == "  >" and step and not step.expected:
            step.command.append("")
        elif line.startswith("  ") and step:
            step.expected.append(line[2:])
        elif line.startswith("  "):
            raise ValueError(f"line {number}: output of no command")
        else:
            parts.append(line)
    return parts


def written(parts):
    """Return a story as text."""
    lines = []
    for part in parts:
        if isinstance(part, str):
            lines.append(part)
            continue
        first, *more = part.command
        lines.append(f"  $ {first}")
        lines += [f"  > {line}" if line else "  >" for line in more]
        lines += [f"  {line}" for line in part.expected]
    return "\n".join(lines) + "\n"


def fits(expected, line):
    """Tell whether a line is as it should be."""
    if expected == line or CODE.fullmatch(line):
        return expected == line
    if expected.endswith(" (glob)"):
        known = re.escape(expected.removesuffix(" (glob)"))
        return re.fullmatch(known.replace(r"\*", ".*").replace(r"\?", "."), line) is not None
    if expected.endswith(" (re)"):
        return re.fullmatch(expected.removesuffix(" (re)"), line) is not None
    return False


def all_fit(expected, lines):
    """Tell whether all lines are as they should be."""
    return len(expected) == len(lines) and all(map(fits, expected, lines))


def rewritten(expected, lines):
    """Return lines as they are to be expected from now on; patterns that still fit are kept."""
    kept, rest = [], list(expected)
    for line in lines:
        at = next((n for n, known in enumerate(rest) if fits(known, line)), None)
        kept.append(line if at is None else rest[at])
        rest = rest if at is None else rest[at + 1 :]
    return kept


class World:
    """An empty git project, a home, and a PATH with little on it."""

    def __init__(self, folder, fleet=""):
        folder = Path(folder).resolve()
        self.project, self.home, self.bin = (folder / name for name in ("project", "home", "bin"))
        for made in (self.project, self.home, self.bin):
            made.mkdir()
        for name in PROGRAMS.split():
            found = shutil.which(name)
            if found:
                (self.bin / name).symlink_to(found)
        source = str(Path(notyet.__file__).parents[1])
        entry = self.bin / "notyet"
        entry.write_text(ENTRY.format(python=sys.executable, source=source))
        entry.chmod(0o755)
        (self.home / ".gitconfig").write_text(GIT)
        self.environ = {
            "PATH": str(self.bin),
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.home / ".local" / "state"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_DATA_HOME": str(self.home / ".local" / "share"),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "BIN": str(self.bin),
            "PROJECT": str(self.project),
            **({"NOTYET_FLEET": fleet} if fleet else {}),
        }
        git = ["git", "init", "--quiet"]
        subprocess.run(git, cwd=self.project, env=self.environ, check=True, timeout=60)

    def run(self, script):
        """Run a script of bash; return what it prints."""
        path, output = self.home.parent / "story.sh", self.home.parent / "output"
        path.write_text(script)
        with output.open("wb") as out:
            started = subprocess.Popen(
                [str(self.bin / "bash"), "--noprofile", "--norc", str(path)],
                cwd=self.project,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                started.wait(PATIENCE)
            finally:
                if started.poll() is None:
                    os.killpg(started.pid, signal.SIGKILL)
                    started.wait()
        return self.named(output.read_text(errors="backslashreplace"))

    def named(self, text):
        """Return a text in which our folders have their names."""
        for name in ("NOTYET_FLEET", "PROJECT", "HOME", "BIN"):
            text = text.replace(self.environ.get(name, "\0"), f"${name}")
        return text


def told(steps, world):
    """Run all steps; return the lines that each of them printed, with its exit code."""
    script = []
    for number, step in enumerate(steps):
        script += [*step.command, f'printf "\\n%s %s %s\\n" "{MARK}" {number} $?']
    output = world.run("\n".join(script) + "\n")
    results = []
    for number in range(len(steps)):
        text, mark, rest = output.partition(f"\n{MARK} {number} ")
        if not mark:
            raise AssertionError(f"the story ended in step {number + 1}:\n{output}")
        code, _, output = rest.partition("\n")
        results.append(_lines(text) + ([] if code == "0" else [f"[{code}]"]))
    return results


def _lines(text):
    """Return what a command printed as lines; the one that we added is not among them."""
    if not text:
        return []
    *lines, last = text.split("\n")
    if last:
        lines.append(f"{last} (no-eol)")
    return [f"{line} (printed)" if CODE.fullmatch(line) else line for line in lines]


def check(path, folder, fleet=""):
    """Tell a story in a new world; raise AssertionError where it differs, or write it anew."""
    parts = parsed(path.read_text(encoding="utf-8"))
    steps = [part for part in parts if isinstance(part, Step)]
    assert steps, f"{path.name} runs no command"
    results = told(steps, World(folder, fleet))
    if os.environ.get(WRITE) == "write":
        for step, lines in zip(steps, results, strict=True):
            step.expected = rewritten(step.expected, lines)
        path.write_text(written(parts), encoding="utf-8")
        return
    wrong = [
        _difference(path, step, lines)
        for step, lines in zip(steps, results, strict=True)
        if not all_fit(step.expected, lines)
    ]
    assert not wrong, "\n".join(wrong) + f"\n(write it anew with {WRITE}=write)"


def _difference(path, step, lines):
    shown = [f"{path.name}:{step.line}: $ {step.command[0]}"]
    kept = rewritten(step.expected, lines)
    missing = [line for line in step.expected if line not in kept]
    for line, known in zip(lines, kept, strict=True):
        shown.append(f"  {' ' if known in step.expected else '+'} {line}")
    return "\n".join([*shown, *(f"  - {line}" for line in missing)])
