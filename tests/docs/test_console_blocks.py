"""The notyet commands that pages tell people to type run in a project of their own."""

import re
import shutil
from pathlib import Path

import pytest

import stories
from pages import ours, prompted

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Tests that run all commands of a page, and compare what they print.
COMPARED = {
    "docs/tutorial.md": "tests/docs/test_tutorial.py",
    "docs/how-to/check.md": "tests/docs/test_check_page.py",
    "docs/how-to/plugin.md": "tests/clients/test_marketplace.py",
    "docs/how-to/replay.md": "tests/docs/test_replay_page.py",
    "docs/how-to/add-a-host.md": "tests/docs/test_add_a_host.py",
    **{
        f"docs/coming-from/{name}.md": "tests/docs/test_coming_from.py"
        for name in ("codex", "conclaude", "mux", "neovate", "openclaw")
    },
}
# Tests that run what cannot run here, by how it begins: it needs a real program, a database,
# another machine or a task at work, or it serves until it is ended.
ELSEWHERE = {
    "acp": "tests/clients/acp/test_agents.py",
    "install codex --trust": "tests/clients/codex/test_places.py",
    "log --stats --ledger": "tests/unit/share/test_team_stats.py",
    "page": "tests/unit/web/test_app.py",
    "ship": "tests/docs/test_share_page.py",
    "submit": "tests/scripts/submit.txt",
    "tasks kill": "tests/unit/cli/test_tasks.py",
    "tasks queue": "tests/scripts/submit.txt",
    "tasks show": "tests/unit/cli/test_tasks.py",
    "tasks steer": "tests/unit/cli/test_tasks.py",
    "tasks workers": "tests/scripts/worker.txt",
    "trust ssh://": "tests/unit/cli/test_trust_remote.py",
    "with": "tests/clients/test_with.py",
    "with scripted:": "tests/docs/test_run_agents_page.py",
    "worker": "tests/scripts/worker.txt",
}
# Codex and Hermes run a hook only once a person approved it there, which these say.
EXITS = {"status codex": "[1]", "status hermes": "[1]"}
ASKING = re.compile(r"notyet (install|uninstall|init|trust)\b(?!.*--yes)")  # a person: none is here
NEW_PROJECT = "rm notyet.toml; printf 'test:\\n\\ttrue\\n' > Makefile"  # for init
FILES = """\
printf '[gates]\\ngreen = "true"\\n' > notyet.toml
printf 'stop:\\n  commands:\\n    - run: "true"\\n' > .conclaude.yaml
mkdir .mux; printf '#!/bin/sh\\n' > .mux/stop; chmod +x .mux/stop
printf '{"session_id": "s", "hook_event_name": "SubagentStop", "cwd": "%s"}' "$PWD" > payload.json
notyet trust --yes > /dev/null"""


def prefix(words, known):
    """Return the longest of the known beginnings that a command has."""
    line = " ".join(words)
    return max((begin for begin in known if line.startswith(begin)), key=len, default=None)


def run_here(page):
    """Return the lines of a page that run here, each with the exit code that it must have."""
    if page.relative_to(ROOT).as_posix() in COMPARED:
        return []
    lines = []
    for line in prompted(page.read_text(encoding="utf-8")):
        found = ours(line)
        if found and not any(prefix(words, ELSEWHERE) for words in found):
            lines.append((line, EXITS.get(prefix(found[0], EXITS), "[0]")))
    return lines


@pytest.mark.parametrize(
    "page", [*filter(run_here, PAGES)], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_the_commands_of_a_page_run_in_a_project(page, tmp_path):
    steps, codes = [stories.Step(0, [FILES])], []
    for line, code in run_here(page):
        if " init" in line:
            steps[-1].command.append(NEW_PROJECT)
        steps.append(stories.Step(0, [ASKING.sub(r"notyet \1 --yes", line)]))
        codes.append(code)
    world = stories.World(tmp_path)
    make = shutil.which("make")
    if make is None:
        pytest.skip("init finds a Makefile, which needs make")
    (world.bin / "make").symlink_to(make)
    before, *printed = stories.told(steps, world)
    assert before == []
    for step, lines, code in zip(steps[1:], printed, codes, strict=True):
        ended = lines[-1] if lines and stories.CODE.fullmatch(lines[-1]) else "[0]"
        assert ended == code, (step.command, lines)


def test_what_does_not_run_here_is_on_a_page():
    pages = [page for page in PAGES if page.relative_to(ROOT).as_posix() not in COMPARED]
    shown = [words for page in pages for line in prompted(page.read_text()) for words in ours(line)]
    assert {prefix(words, ELSEWHERE) for words in shown} - {None} == set(ELSEWHERE)
    assert {prefix(words, EXITS) for words in shown} - {None} == set(EXITS)


def test_what_runs_elsewhere_has_a_test_there():
    for page, test in COMPARED.items():
        text = (ROOT / test).read_text(encoding="utf-8")
        assert f'"{Path(page).name}"' in text or '"coming-from"' in text, page
    for command, test in ELSEWHERE.items():
        text = (ROOT / test).read_text(encoding="utf-8")
        assert all(word in text for word in re.findall(r"[a-z-]{3,}", command)), command
