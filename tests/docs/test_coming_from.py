"""The pages for people who know another system: every row has a proof, every example runs."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import stories

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
FOLDER = ROOT / "docs" / "coming-from"
RULES = ROOT / "docs" / "reference" / "rules.md"
PAGES = sorted(FOLDER.glob("*.md"))
NAMES = [page.stem for page in PAGES]
SECTIONS = [
    "In two minutes",
    "Behaviour by behaviour",
    "What you get on top",
    "What is different, and why",
    "Troubleshooting",
]
HEAD = ["behaviour", "here", "proof", "differs?"]
CHECKED = {"python", "console", "toml", "json", "yaml"}  # the last three by test_reference
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INTO = re.compile(r"`([^`\s]+)`:$")  # the words before a block that is a file
RULE = re.compile(r"\b[A-Z]\d{1,2}\b")
SHOP = "/home/ada/shop"  # what a page calls the project
ANY = "..."


def every_page():
    return pytest.mark.parametrize("page", PAGES, ids=NAMES)


def tables(text):
    """Return the tables of a page, each with its head and its rows of cells."""
    found, rows = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif rows:
            found.append((rows[0], rows[2:]))
            rows = []
    return found


def behaviour(page):
    """Return the rows of a page's one table of behaviour."""
    ((_, rows),) = [table for table in tables(page.read_text()) if table[0] == HEAD]
    return rows


@cache
def names_in(file):
    """Return the tests that pytest collects from a file, as it names them; none of any other."""
    path = ROOT / file
    if not (file.startswith("tests/") and path.match("test_*.py") and path.exists()):
        return set()
    return {f"{file}::{test}" for test in _tests(ast.parse(path.read_text()).body)}


def is_collected(test):
    return test in names_in(test.partition("::")[0])


def _tests(body):
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("test"):
                yield node.name
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from (f"{node.name}::{test}" for test in _tests(node.body))


def sources():
    """Return the rules that come from each system, as the page of the rules says."""
    ((_, rows),) = [table for table in tables(RULES.read_text()) if table[0] == ["system", "rules"]]
    return {re.search(r"coming-from/(\w+)\.md", link).group(1): ids.split() for link, ids in rows}


def test_there_is_a_page_for_each_system_and_each_is_reached():
    assert sorted(NAMES) == ["codex", "conclaude", "mux", "neovate", "openclaw"]
    assert sorted(sources()) == sorted(NAMES)
    for name in NAMES:
        for page in (ROOT / "README.md", ROOT / "docs" / "architecture.md"):
            assert f"coming-from/{name}.md" in page.read_text(), page


@every_page()
def test_a_page_has_its_five_sections_in_order(page):
    assert re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE) == SECTIONS


@every_page()
def test_every_row_names_a_test_that_exists_and_says_whether_it_differs(page):
    rows = behaviour(page)
    assert len(rows) > 15
    for row in rows:
        assert len(row) == len(HEAD), row
        assert all(row), f"an empty cell: {row[0]}"
        named = re.findall(r"`([^`]+)`", row[2])
        assert row[2] == " ".join(f"`{name}`" for name in named), f"no proof: {row[0]}"
        assert [name for name in named if not is_collected(name)] == [], row[0]
        # Real programs are not on every machine: there is a proof that needs none.
        assert not all(name.startswith("tests/clients/") for name in named), row[0]


@every_page()
def test_a_page_names_every_rule_that_comes_from_its_system(page):
    named = {rule for row in behaviour(page) for rule in RULE.findall(row[1])}
    wanted = sources()[page.stem]
    assert [rule for rule in wanted if rule not in named] == []
    rules = {row[0] for _, rows in tables(RULES.read_text()) for row in rows}
    assert sorted(named - rules) == []


@every_page()
def test_every_block_of_a_page_is_checked(page):
    languages = [language for language, _ in FENCE.findall(page.read_text())]
    assert set(languages) <= CHECKED
    assert "console" in languages


@every_page()
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "example"}
    for number, (language, block) in enumerate(FENCE.findall(page.read_text()), 1):
        if language == "python":
            exec(compile(block, f"{page.name} block {number}", "exec"), names)


def steps(text):
    """Return what a reader of a page does: write the files, run the commands."""
    done = []
    for block in FENCE.finditer(text):
        language, body = block.groups()
        before = text[: block.start()].rstrip().rpartition("\n")[2]
        into = INTO.search(before)
        if language == "console":
            indented = "".join(f"  {line}\n" for line in body.splitlines())
            done += [part for part in stories.parsed(indented) if isinstance(part, stories.Step)]
        elif into and language != "python":
            done.append(stories.Step(0, [f"cat > {into[1]} <<'END'", *body.splitlines(), "END"]))
    return done


def shown(lines):
    """Return what was printed as a page shows it, and blanks for any number of them."""
    return [" ".join(line.replace("$PROJECT", SHOP).split()) for line in lines]


def fits(expected, line):
    pattern = ".*".join(map(re.escape, expected.split(ANY)))
    return re.fullmatch(pattern, line) is not None


@every_page()
def test_the_commands_of_a_page_print_what_it_shows(page, tmp_path):
    todo = steps(page.read_text())
    world = stories.World(tmp_path)
    for step, lines in zip(todo, stories.told(todo, world), strict=True):
        expected, printed = shown(step.expected), shown(lines)
        assert len(expected) == len(printed), (step.command, printed)
        assert all(map(fits, expected, printed)), (step.command, printed)


@pytest.mark.parametrize(
    ("expected", "line", "fit"),
    [
        ("a b", "a b", True),
        ("a b", "a c", False),
        ("a ... c", "a b c", True),
        ("a ... c", "a b d", False),
        ("a.c", "abc", False),
    ],
)
def test_what_a_page_shows_is_taken_literally_but_for_dots(expected, line, fit):
    assert fits(expected, line) is fit


def test_a_row_without_a_proof_is_noticed(tmp_path):
    text = "| behaviour | here | proof | differs? |\n|---|---|---|---|\n| a | b | soon | no |\n"
    page = tmp_path / "x.md"
    page.write_text(text)
    with pytest.raises(AssertionError):
        test_every_row_names_a_test_that_exists_and_says_whether_it_differs(page)


@pytest.mark.parametrize(
    ("test", "collected"),
    [
        ("tests/docs/test_coming_from.py::test_only_what_pytest_collects_counts", True),
        (
            "tests/unit/adapters/test_mux_hooks.py::TestTheExecutor::test_exit_1_stops_with_a_warning",
            True,
        ),
        ("tests/docs/test_coming_from.py::steps", False),
        ("tests/docs/test_coming_from.py::test_nothing_like_that", False),
        ("tests/unit/adapters/test_mux_hooks.py::test_exit_1_stops_with_a_warning", False),
        ("tests/nowhere/test_x.py::test_x", False),
        ("tests/stories.py::check", False),
    ],
)
def test_only_what_pytest_collects_counts(test, collected):
    assert is_collected(test) is collected
