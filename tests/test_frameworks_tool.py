"""`make test-frameworks`: environments, what is proven, and what is reported."""

import importlib.util
import json
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TOOL = HERE.parent / "tools" / "frameworks.py"
PROVEN = """
import pytest

@pytest.mark.holds("sync run")
def test_it_runs(): pass

@pytest.mark.holds("halt")
def test_it_halts(): {halts}

@pytest.mark.holds("usage")
def test_it_counts(): pytest.skip("no tokens")

@pytest.mark.cannot_hold("stream", "it is over by then: too late")
def test_it_streams(): pass
"""
# Writes down how it is called, and makes an environment of the Python that runs this test.
UV = """\
#!/bin/sh
echo "$@" >> "$0.log"
test "$1" = venv || exit 0
for folder; do :; done
mkdir -p "$folder/bin"
printf '#!/bin/sh\\nexec {python} "$@"\\n' > "$folder/bin/python"
chmod +x "$folder/bin/python"
"""


@pytest.fixture
def world(tmp_path, monkeypatch, capsys):
    """A checkout with two frameworks; `run` returns the exit code and what was printed."""
    spec = importlib.util.spec_from_file_location("frameworks_tool", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    pins, tests, programs = tmp_path / "pins", tmp_path / "tests", tmp_path / "programs"
    for folder in (pins, tests, programs):
        folder.mkdir()
    shutil.copy(HERE / "frameworks" / "conftest.py", tests)
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["rich"]\n')
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  holds\n  cannot_hold\n")
    for name in ("one", "two_three"):
        (pins / f"{name}.txt").write_text("# comment\npytest==1.0\nother[x]>=2\n")
        (tests / f"test_{name}.py").write_text(PROVEN.format(halts="pass"))
    uv = programs / "uv"
    uv.write_text(UV.format(python=sys.executable))
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    for name in ("FRAMEWORKS", "FULL", "NEWEST", "WRITE"):
        monkeypatch.delenv(name, raising=False)
    one, two = (tool.Framework(title, "pytest", f"{title}.md") for title in ("One", "Two"))
    places = {"ROOT": tmp_path, "PINS": pins, "TESTS": tests, "VENVS": tmp_path / "venvs"}
    record = tests / "proven.json"
    for key, value in (places | {"RECORD": record}).items():
        monkeypatch.setattr(tool, key, value)
    monkeypatch.setattr(tool, "FRAMEWORKS", {"one": one, "two_three": two})

    def run(**variables):
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            return tool.main(), capsys.readouterr().out

    run.tool, run.folder, run.record, run.uv = tool, tmp_path, record, uv
    return run


def calls(world):
    """Return how uv was called."""
    log = Path(f"{world.uv}.log")
    return log.read_text().splitlines() if log.exists() else []


def test_what_tests_prove_is_recorded_and_compared(world):
    code, said = world()
    assert code == 1
    assert "tests/proven.json does not say what was proven of one, two_three\n" in said
    code, said = world(FRAMEWORKS="one", WRITE="1")
    assert (code, "wrote tests/proven.json; now run: make docs" in said) == (0, True)
    assert json.loads(world.record.read_text())["one"] == {
        "version": version("pytest"),
        "holds": ["halt", "sync run"],
        "cannot": {"stream": "it is over by then: too late"},
    }
    code, said = world(FRAMEWORKS="one")
    assert code == 0
    assert f"  ok       pytest {version('pytest')} " in said
    assert "3 passed, 1 skipped in " in said


def test_a_test_that_fails_is_shown_and_fails_the_run(world):
    (world.folder / "tests" / "test_one.py").write_text(PROVEN.format(halts="assert False"))
    code, said = world(FRAMEWORKS="one", WRITE="1")
    assert code == 1
    assert "--- one\n" in said
    assert "FAILED tests/test_one.py::test_it_halts" in said
    assert "  FAILED   pytest " in said
    assert not world.record.exists()


def test_an_environment_is_built_once_and_again_when_its_needs_change(world):
    def built():
        python = world.tool.installed("one", newest=False)
        assert python == world.folder / "venvs" / "one" / "bin" / "python"
        return len(calls(world))

    project = world.folder / "pyproject.toml"
    assert [built(), built()] == [2, 2]
    venv, install = calls(world)
    assert venv.startswith("venv ")
    assert " pytest==1.0 other[x]>=2 --editable " in install
    assert "comment" not in install
    (world.folder / "pins" / "one.txt").write_text("pytest==2.0\n")
    assert [built(), built()] == [4, 4]
    project.write_text('[project]\ndependencies = ["rich", "attrs"]\n')
    assert [built(), built()] == [6, 6]
    project.write_text(project.read_text() + "[tool.x]\n")
    assert built() == 6


def test_only_the_chosen_frameworks_are_tested(world):
    code, said = world(FRAMEWORKS="two-three", WRITE="1")
    assert code == 0
    assert [*json.loads(world.record.read_text())] == ["two_three"]
    code, said = world(FRAMEWORKS="one,four")
    assert (code, said) == (2, "FRAMEWORKS: no four; there are: one, two_three\n")


def test_a_framework_that_cannot_be_installed_is_skipped_and_fails_only_with_full(world):
    world.uv.write_text("#!/bin/sh\necho WARNING: slow >&2; echo no such host >&2; exit 1\n")
    code, said = world()
    assert code == 0
    assert said.count("not installed: no such host") == 2
    assert "  skipped  pytest " in said
    code, _ = world(FULL="1")
    assert code == 1


def test_the_newest_versions_only_report(world):
    (world.folder / "tests" / "test_one.py").write_text(PROVEN.format(halts="assert False"))
    code, said = world(NEWEST="1", FRAMEWORKS="one")
    assert code == 0
    assert "  FAILED   pytest " in said
    assert " pytest other[x] --editable " in calls(world)[-1]
    assert not world.record.exists()
