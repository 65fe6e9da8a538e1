"""`no:secrets`: detect-secrets for real where it is installed, gitleaks by its documented options.

The gitleaks here is a script: none can be installed by a package manager of Python or Node.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import git
from preset_questions import ask, only_on_path, passes, program

KEY = "AKIA" + "QWERTYUIOPASDFGH"  # in two parts, so that no scanner finds it here
OTHER = "AKIA" + "ZXCVBNMASDFGHJKL"
DETECT_SECRETS = shutil.which("detect-secrets-hook")
GITLEAKS = f"""#!{sys.executable}
import json, os, re, sys
args = sys.argv[1:]
log = os.environ["GITLEAKS_LOG"]
open(log, "a").write(json.dumps([args, os.getcwd(), sorted(os.listdir("."))]) + "\\n")
mode = os.environ.get("GITLEAKS_MODE", "")
if mode == "old" and args[0] == "dir":
    sys.exit('Error: unknown command "dir" for "gitleaks"')
if mode == "broken":
    sys.exit("FTL unable to load gitleaks config")
def option(name): return args[args.index(name) + 1]
found = []
for place, _, names in os.walk("."):
    for name in names:
        path = os.path.normpath(os.path.join(place, name))
        for n, line in enumerate(open(path, errors="replace"), 1):
            if re.search("AKIA[A-Z]{{16}}", line):
                found.append(dict(RuleID="aws-access-token", File=path, StartLine=n, EndLine=n,
                                  Secret="REDACTED", Match=line))
if mode != "unreadable":
    json.dump(found, open(option("--report-path"), "w"))
sys.exit(int(option("--exit-code")) if found else 0)
"""


@pytest.fixture
def root(git_project):
    return Path(git_project)


@pytest.fixture
def gitleaks(tmp_path, monkeypatch):
    """A PATH with git and a gitleaks; returns what it was called with."""
    only_on_path(monkeypatch, tmp_path / "bin", "git")
    program(tmp_path / "bin", "gitleaks", GITLEAKS)
    monkeypatch.setenv("GITLEAKS_LOG", str(tmp_path / "log"))
    return lambda: [json.loads(x) for x in (tmp_path / "log").read_text().splitlines()]


def test_without_a_scanner_it_says_which_to_install(root, tmp_path, monkeypatch):
    only_on_path(monkeypatch, tmp_path / "bin", "git")
    problem = ask("no:secrets", root).problem
    assert "brew install gitleaks" in problem
    assert "pipx install detect-secrets" in problem


def test_a_secret_is_named_by_file_line_and_rule_and_never_printed(root, gitleaks):
    (root / "new dir").mkdir()
    (root / "new dir" / "a.py").write_text(f"x\nkey = '{KEY}'\n")
    answer = ask("no:secrets", root)
    assert "found 1 secret in what you changed:\n  new dir/a.py:2 (aws-access-token)\n" in (
        answer.reason
    )
    assert KEY not in repr(answer)
    (args, place, _) = gitleaks()[0]
    assert args[:2] == ["dir", "."]
    assert "--redact" in args
    assert not os.path.exists(place), "the copies are removed"


def test_only_changed_files_and_the_settings_are_scanned(root, gitleaks):
    (root / ".gitleaks.toml").write_text(f"# {KEY}\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "settings")
    (root / "new.py").touch()
    assert passes(ask("no:secrets", root))
    assert gitleaks()[0][2] == [".gitleaks.toml", "new.py"]


def test_a_secret_that_was_there_before_is_not_the_agents(root, gitleaks):
    (root / "file.txt").write_text(f"{KEY}\n")
    git(root, "commit", "-qam", "a fixture")
    (root / "file.txt").write_text(f"moved\n{KEY}\n")
    assert passes(ask("no:secrets", root))
    (root / "file.txt").write_text(f"moved\n{KEY}\n{OTHER}\n")
    assert "\n  file.txt:3 (" in ask("no:secrets", root).reason


def test_an_old_gitleaks_is_called_as_it_was(root, gitleaks, monkeypatch):
    monkeypatch.setenv("GITLEAKS_MODE", "old")
    (root / "a.py").write_text(KEY)
    assert "a.py:1" in ask("no:secrets", root).reason
    assert gitleaks()[1][0][:4] == ["detect", "--no-git", "--source", "."]


@pytest.mark.parametrize(
    ("mode", "words"),
    [("broken", "unable to load gitleaks config"), ("unreadable", "its report cannot be read")],
)
def test_a_gitleaks_that_fails_is_a_problem(mode, words, root, gitleaks, monkeypatch):
    monkeypatch.setenv("GITLEAKS_MODE", mode)
    (root / "a.py").write_text(KEY)
    assert words in ask("no:secrets", root).problem


def test_without_a_change_nothing_runs(root, gitleaks):
    assert ask("no:secrets", root).note == "no file changed"
    with pytest.raises(FileNotFoundError):
        gitleaks()


def test_a_large_file_is_not_scanned_and_the_user_is_told(root, gitleaks):
    with (root / "large").open("wb") as file:
        file.truncate(11 * 1024 * 1024)
    assert ask("no:secrets", root).tell == "no:secrets did not scan 1 files over 10 MB"


def test_a_link_out_of_the_repository_is_not_followed(root, gitleaks, tmp_path):
    (tmp_path / "outside").write_text(KEY)
    (root / "link").symlink_to(tmp_path / "outside")
    assert passes(ask("no:secrets", root))


@pytest.mark.skipif(DETECT_SECRETS is None, reason="detect-secrets is not installed")
class TestDetectSecrets:
    """The real program."""

    @pytest.fixture(autouse=True)
    def path(self, tmp_path, monkeypatch):
        only_on_path(monkeypatch, tmp_path / "bin", "git", "detect-secrets-hook")

    def test_a_secret_is_found_and_not_printed(self, root):
        (root / "-a.py").write_text(f"x = 1\nkey = '{KEY}'\n")
        answer = ask("no:secrets", root)
        assert "\n  -a.py:2 (AWS Access Key)\n" in answer.reason
        assert KEY not in repr(answer)

    def test_the_baseline_counts_and_is_left_as_it_is(self, root):
        (root / "old.py").write_text(f"key = '{KEY}'\n")
        git(root, "add", ".")
        scan = [os.path.join(os.path.dirname(DETECT_SECRETS), "detect-secrets"), "scan"]
        done = subprocess.run(scan, cwd=root, capture_output=True, check=True)
        baseline = root / ".secrets.baseline"
        baseline.write_bytes(done.stdout)
        (root / "old.py").write_text(f"# moved\nkey = '{KEY}'\n")
        assert passes(ask("no:secrets", root))
        assert baseline.read_bytes() == done.stdout
        (root / "new.py").write_text(f"key = '{OTHER}'\n")
        assert "new.py:1" in ask("no:secrets", root).reason

    def test_a_damaged_baseline_is_a_problem(self, root):
        (root / ".secrets.baseline").write_text("{")
        (root / "a.py").touch()
        assert "detect-secrets-hook failed" in ask("no:secrets", root).problem
