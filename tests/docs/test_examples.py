"""Every Python block of the documentation runs, page by page, in order."""

import ast
import asyncio
import re
import textwrap
from pathlib import Path

import pytest

from conftest import git
from notyet import Ledger
from notyet.ledger.placements import Placements

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "docs/how-to/embed.md",
    "docs/how-to/fleet.md",
    "docs/how-to/mux.md",
    "docs/how-to/supervise.md",
]
# Tests that run the blocks of other pages, most with the real framework or program.
ELSEWHERE = {
    "docs/how-to/add-a-host.md": "tests/docs/test_add_a_host.py",
    "docs/how-to/claude-agent-sdk.md": "tests/frameworks/test_claude_agent_sdk.py",
    "docs/how-to/claude-code.md": "tests/clients/claude_code/test_sdk.py",
    "docs/how-to/google-adk.md": "tests/frameworks/test_google_adk.py",
    "docs/how-to/langchain.md": "tests/frameworks/test_langchain.py",
    "docs/how-to/openai-agents.md": "tests/frameworks/test_openai_agents.py",
    "docs/how-to/pydantic-ai.md": "tests/frameworks/test_pydantic_ai.py",
    "docs/how-to/strands.md": "tests/frameworks/test_strands.py",
    "docs/how-to/write-an-adapter.md": "tests/frameworks/test_smolagents.py",
    **{
        f"docs/coming-from/{name}.md": "tests/docs/test_coming_from.py"
        for name in ("mux", "neovate", "openclaw")
    },
}
# Its lines need the agent of a reader; a program of the tests names the same.
IN_A_PROGRAM = {"docs/how-to/openhands.md": "tests/clients/openhands/agent.py"}


def blocks(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    parts = text.split("```python\n")[1:]
    return [part.split("```")[0] for part in parts]


@pytest.mark.parametrize("where", ["a folder", "a git repository"])
@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run(page, where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if where == "a git repository":
        git(tmp_path, "init", "--quiet")
    names = {"__name__": "example"}
    found = blocks(page)
    assert found
    for number, block in enumerate(found, 1):
        exec(compile(block, f"{page} block {number}", "exec"), names)


def test_the_schedule_of_a_page_is_in_the_fleet(cluster, monkeypatch):
    fleet = pytest.importorskip("notyet.fleet")
    cluster.psql("CREATE DATABASE example")
    monkeypatch.setenv("NOTYET_FLEET", cluster.url(database="example"))
    names = {"__name__": "example"}
    exec("".join(blocks("docs/how-to/fleet.md")), names)

    async def define():
        async with fleet.Fleet(queues=[fleet.Queue("agents")]):
            pass

    asyncio.run(define())
    asyncio.run(names["every_night"]())
    ledger = Ledger(cluster.url(database="example"))
    assert [name for name, *_ in Placements(ledger).schedules()] == ["nightly-green"]
    ledger.close()
    cluster.psql("DROP DATABASE example WITH (FORCE)")


def test_every_page_with_python_is_run_by_a_test():
    docs = (ROOT / "docs").rglob("*.md")
    pages = ["README.md", *(page.relative_to(ROOT).as_posix() for page in docs)]
    assert {page for page in pages if blocks(page)} == {*PAGES, *ELSEWHERE, *IN_A_PROGRAM}
    for page, test in ELSEWHERE.items():
        text = (ROOT / test).read_text(encoding="utf-8")
        assert f'"{Path(page).name}"' in text or '"coming-from"' in text, page


def names_in(code):
    """Return what a program imports, and the arguments that it names."""
    nodes = [*ast.walk(ast.parse(code))]
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    known = {f"{node.module}.{name.name}" for node in imports for name in node.names}
    return known | {node.arg for node in nodes if isinstance(node, ast.keyword)}


def test_what_a_page_names_is_what_a_program_of_the_tests_names():
    for page, program in IN_A_PROGRAM.items():
        named = names_in("".join(blocks(page)))
        assert named - names_in((ROOT / program).read_text(encoding="utf-8")) == set()


def test_the_example_of_the_package_runs():
    import notyet

    _, example = notyet.__doc__.split("\n\n", 1)
    names = {}
    exec(textwrap.dedent(example), names)
    assert names["decision"].outcome == "blocked"


def headings(page):
    """Return the places in a page that a link can name."""
    lines = page.read_text(encoding="utf-8").splitlines()
    titles = [line.lstrip("#").strip().lower() for line in lines if line.startswith("#")]
    return {re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles}


def test_links_between_pages_lead_somewhere():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for part in page.read_text(encoding="utf-8").split("](")[1:]:
            target = part.split(")")[0]
            if not target.startswith("http"):
                file, _, place = target.partition("#")
                there = page.parent / file if file else page
                assert there.exists(), f"{page}: {target}"
                assert not place or place in headings(there), f"{page}: {target}"
