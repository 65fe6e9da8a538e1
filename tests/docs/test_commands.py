"""Every notyet command of the documentation is one that the command line takes."""

import re
from pathlib import Path

import pytest

from notyet.cli.main import parsed
from pages import FENCE, ours

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROMPT = {"console": "$ ", "sh": "", "bash": ""}  # of the languages whose lines a person types
IN_FILES = re.compile(r"[\"'](notyet [^\"'\n]*)[\"']|^ *- (?:run: )?(notyet .*)$", re.MULTILINE)
INDENTED = re.compile(r"^ {4}\$ (.*notyet .*)$", re.MULTILINE)
IN_WORDS = re.compile(r"`((?:NOTYET_\w+=\S+ )?notyet [^`\n]*)`")
# What stands for a word of the reader's own; `acme` is the host that its page adds.
STANDS_FOR = {"HOST": "claude", "NAME": "claude", "acme": "claude", "ID": "1", "N": "1"}
IS_PART = ("are required", "is required", "expected one argument")  # of a command: `notyet with`


def shown(text):
    """Return the whole commands on a page, and those that only its sentences name."""
    whole = INDENTED.findall(text)
    for language, body in FENCE.findall(text):
        prompt = PROMPT.get(language)
        if prompt is None:
            whole += ["".join(found) for found in IN_FILES.findall(body)]
        else:
            lines = [line for line in body.splitlines() if line.startswith(prompt)]
            whole += [line.removeprefix(prompt) for line in lines if "notyet" in line]
    named = [line for line in IN_WORDS.findall(FENCE.sub("", text)) if ": …" not in line]
    return whole, [line for line in named if "COMMAND" not in line]


def mistakes(lines, capsys, spared=()):
    """Return the lines that the command line refuses, each with what it says."""
    found = []
    for line in lines:
        for words in ours(line):
            if not words:
                continue
            try:
                parsed([STANDS_FOR.get(word, word) for word in words])
            except SystemExit as end:
                said = capsys.readouterr().err
                if end.code and not any(part in said for part in spared):
                    found.append((line, said))
    return found


def is_shown(page):
    return any(shown(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "page", [*filter(is_shown, PAGES)], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_the_commands_of_a_page_exist_with_their_options(page, capsys):
    whole, named = shown(page.read_text(encoding="utf-8"))
    assert mistakes(whole, capsys) == []
    assert mistakes(named, capsys, IS_PART) == []


def test_most_pages_show_a_command():
    assert len([page for page in PAGES if is_shown(page)]) > 50


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("```console\n$ notyet check\n```\n", 0),
        ("```console\n$ notyet chek\n```\n", 1),
        ("```console\n$ notyet check --alll\nnotyet says something\n```\n", 1),
        ("```console\n$ git diff | X=1 notyet with codex - --jsn 2>log | jq .\n```\n", 1),
        ("```console\n$ notyet with\n```\n", 1),
        ("```sh\nif notyet offf; then echo; fi\n```\n", 1),
        ('```json\n{"command": "notyet hook --host cluade"}\n```\n', 1),
        ("```yml\n- run: notyet page --svae x  # a file\n```\n", 1),
        ("    $ notyet log --gate\n", 1),
        ("With `notyet with`, and `notyet trust --yes`.\n", 0),
        ("With `notyet trust --yess`.\n", 1),
    ],
)
def test_a_command_that_is_none_is_found(text, count, capsys):
    whole, named = shown(text)
    assert len(mistakes(whole, capsys) + mistakes(named, capsys, IS_PART)) == count
