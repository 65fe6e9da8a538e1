"""Draws docs/demo.svg from a real run of `notyet demo`: what becomes of one of its agents."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "demo.svg"
AGENT = "ada"
WIDTH = 96
STYLES = {
    r"^ +\d+\.\ds": "dim",
    r"(?<=s  )\w+": "bold cyan",
    r"not yet|blocked": "bold red",
    r"may stop: passed|allowed": "bold green",
    r"^ +\|.*": "default",
}
QUOTED = re.compile(r"^ +\| +(FAILED|Hint:|\w+Error:)|^ +\| (FAILED|Hint:)")


def main() -> int:
    """Run the demo and write the picture."""
    command = [sys.executable, "-m", "notyet", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text("$ notyet demo", style="bold"), "")
    for line in excerpt(done.stdout.splitlines()):
        console.print(styled(line))
    PICTURE.write_text(console.export_svg(title="notyet demo (excerpt)"), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}")
    return 0


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


if __name__ == "__main__":
    sys.exit(main())
