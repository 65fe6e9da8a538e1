"""The hooks for pre-commit, run by the real pre-commit."""

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "build" / "package-venv" / "bin"


CONFIG = """\
repos:
  - repo: {repository}
    rev: {commit}
    hooks: [id: notyet-validate, id: notyet-check]
"""


def test_pre_commit_runs_both_hooks(machine, tmp_path):
    repository = tmp_path / "notyet"
    shutil.copytree(ROOT / "src", repository / "src")
    for name in (".pre-commit-hooks.yaml", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, repository)
    git = ("git", "-C", repository, "-c", "user.name=A", "-c", "user.email=a@b.c")
    machine.run(*git, "init", "--quiet")
    machine.run(*git, "add", ".")
    machine.run(*git, "commit", "--quiet", "-m", "All")
    commit = machine.run(*git, "rev-parse", "HEAD").strip()
    config = CONFIG.format(repository=repository, commit=commit)
    machine.write(".pre-commit-config.yaml", config)
    machine.run("git", "add", ".")
    environ = {"PRE_COMMIT_HOME": str(tmp_path / "cache")}

    def hook(name, code):
        line = (TOOLS / "pre-commit", "run", f"notyet-{name}", "--all-files", "--verbose")
        return machine.run(*line, environ=environ, code=code)

    assert "notyet.toml: no mistakes (2 gates)" in hook("validate", 0)
    assert "is not trusted; run: notyet trust" in hook("check", 1)
    (notyet,) = tmp_path.glob("cache/repo*/py_env-*/bin/notyet")
    machine.run(notyet, "trust", "--yes")
    assert "✗ tests" in hook("check", 1)
    machine.write("notyet.toml", '[gates]\nlint = "true"\n')
    machine.run(notyet, "trust", "--yes")
    assert "passed: the agent may stop" in hook("check", 0)
    machine.write("notyet.toml", "[gates]\nlint = 5\n")
    assert "notyet.toml:2:1: `gates.lint` must be" in hook("validate", 1)
