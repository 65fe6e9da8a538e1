"""A test that fails among others and passes alone is named, and does not fail the check."""

import importlib.util
import os

import pytest

TOOL = os.path.join(os.path.dirname(os.path.dirname(__file__)), "tools", "checks.py")
# Each fails as often as its argument says, and then passes.
PROJECT = """
import os
import pytest

@pytest.mark.parametrize("times", {})
def test_it(times):
    with open("tries", "a+") as file:
        file.write(f"{{times}}\\n")
        file.seek(0)
        assert file.read().split().count(str(times)) > times
"""


@pytest.fixture
def checked(tmp_path, monkeypatch, capfd):
    """Runs the check of the tests on a project; returns its exit code and output."""
    spec = importlib.util.spec_from_file_location("checks_tool", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    plain = ["pytest", "-q", "-p", "no:hypothesispytest", "-p", "no:xdist", "-p", "no:cov"]
    for table in ("LINT", "COLLECT", "CORE_TESTS", "COVERAGE"):
        monkeypatch.setattr(tool, table, {})
    monkeypatch.setattr(tool, "TESTS", {"tests": [*plain, "--cache-clear"]})
    monkeypatch.setattr(tool, "AGAIN", plain)
    monkeypatch.chdir(tmp_path)

    def run(*times):
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        (tmp_path / "test_x.py").write_text(PROJECT.format(list(times)))
        code = tool.main("all")
        return code, capfd.readouterr().out

    return run


def test_few_that_pass_alone_are_named_and_nothing_failed(checked):
    code, said = checked(0, 1, 1.5)
    assert code == 0
    assert "  ok       tests " in said
    assert "  UNSTEADY tests  test_x.py::test_it[1.5]\n" in said
    assert "  UNSTEADY tests  test_x.py::test_it[1]\n" in said
    assert "\nall checks passed in 0 min " in said
    assert said.endswith("\n2 UNSTEADY: failed among the others and passed alone; fix it\n")


@pytest.mark.parametrize("times", [(0, 1, 2), (1, 1.1, 1.2, 1.3, 1.4, 1.5)], ids=["twice", "many"])
def test_one_that_fails_again_and_many_at_once_are_a_failure(checked, times):
    code, said = checked(*times)
    assert code == 1
    assert "  FAILED   tests " in said
    assert "UNSTEADY" not in said
    assert said.count("--- running again, alone") == (len(times) == 3)


def test_where_all_is_well_nothing_is_run_again(checked):
    code, said = checked(0)
    assert code == 0
    assert "again" not in said
