"""The GitHub action and the job for GitLab: their scripts run, as the services run them."""

import re
import shlex
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

import notyet
from pages import fenced

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "build" / "package-venv" / "bin"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
PAGE = ROOT / "docs" / "how-to" / "ci.md"
INPUTS = {name: given["default"] for name, given in ACTION["inputs"].items()}


class Job:
    """Runs the steps of the action as GitHub does: a file for bash, inputs as variables."""

    def __init__(self, machine, folder):
        self.machine, self.temp = machine, folder / "runner"
        self.temp.mkdir()
        self.summary = self.temp / "summary.md"
        self.environ = {
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_WORKSPACE": str(machine.project),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "RUNNER_TEMP": str(self.temp),
        }

    @property
    def results(self):
        return self.temp / "notyet-results"

    def run(self, failing="", code=1, **inputs):
        """Run all steps, of which one fails; return what each printed."""
        printed = {}
        for step in ACTION["runs"]["steps"]:
            is_always = step.get("if", "").startswith("always()")
            is_done = step.get("id") == "install" and self.results.exists()
            if "uses" in step or is_done or (failing in printed and not is_always):
                continue
            values = {
                name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: (INPUTS | inputs)[m[1]], value)
                for name, value in step.get("env", {}).items()
            }
            script = self.temp / "step.sh"
            script.write_text(step["run"])
            assert "${{" not in step["run"]
            printed[step["name"]] = self.machine.run(
                *("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script),
                environ=self.environ | values,
                code=code if step["name"] == failing else 0,
            )
        return printed


@pytest.fixture
def job(machine, tmp_path):
    return Job(machine, tmp_path)


def test_the_action_annotates_and_keeps_the_results(job, machine):
    said = job.run(failing="Run the gates")
    (error,) = [line for line in said["Run the gates"].splitlines() if line.startswith("::")]
    assert error == (
        "::error file=notyet.toml,line=1,title=notyet check::"
        "FAILED tests (exit 1): echo 1 failed; exit 1%0A1 failed"
    )
    summary = job.summary.read_text()
    assert summary.startswith("### notyet check\n\n      ✗ tests")
    assert all(line.startswith("    ") or not line.strip() for line in summary.splitlines()[2:])
    suite = ET.parse(job.results / "gates.xml").getroot()[0]  # noqa: S314  # it is our own
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    assert "<html" in (job.results / "stops.html").read_text()

    # The same job, with only a gate that passes, in a folder with spaces.
    folder = machine.project / "a b"
    folder.mkdir()
    job.summary.unlink()
    said = job.run(directory="a b", gates=" lint\n ")
    assert said["Run the gates"] == "passed: the agent may stop\n"
    assert "✓ lint" in job.summary.read_text()

    # No input can change a script.
    shutil.copytree(folder, machine.project / "$(touch evil)")
    said = job.run("Run the gates", 2, directory="$(touch evil)", gates="$(touch evil)")
    assert "there is no gate '$(touch'" in said["Run the gates"]
    assert not list(machine.project.rglob("evil"))

    # A file with a mistake: nothing of it is trusted, and the mistake is annotated.
    machine.write("notyet.toml", "[gates]\na = 5\n")
    said = job.run(failing="Trust the gates of this commit")
    annotation = "::error file=notyet.toml,line=2,col=1,title=notyet validate::"
    assert annotation in said["Trust the gates of this commit"]


def test_the_page_names_every_input_and_hook():
    page = PAGE.read_text()
    assert [name for name in INPUTS if f"`{name}`" not in page] == []
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    blocks = [yaml.safe_load(block) for block in fenced(PAGE, "yml")]
    (config,) = [block for block in blocks if "repos" in block]
    named = [hook["id"] for hook in config["repos"][0]["hooks"]]
    assert named == [hook["id"] for hook in hooks]


def test_zizmor_finds_nothing(machine):
    files = [ROOT / "action.yml", *sorted((ROOT / ".github").rglob("*.yml"))]
    machine.run(TOOLS / "zizmor", "--offline", "--pedantic", *files)


def test_only_the_tag_of_this_version_is_published_and_only_one_job_may(machine):
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    (step,) = [s for s in release["jobs"]["build"]["steps"] if s.get("name", "").startswith("The")]
    for tag, code in ((f"v{notyet.__version__}", 0), (f"v{notyet.__version__}.post1", 1)):
        line = ("bash", "-e", "-c", f"cd {shlex.quote(str(ROOT))}; {step['run']}")
        machine.run(*line, environ={"GITHUB_REF_NAME": tag}, code=code)
    rights = {name: job["permissions"] for name, job in release["jobs"].items()}
    assert rights == {"build": {"contents": "read"}, "publish": {"id-token": "write"}}
    assert release["permissions"] == {}
    assert release["jobs"]["publish"]["environment"] == "pypi"


def test_the_lines_for_gitlab_work(machine, tmp_path):
    (block,) = [block for block in fenced(PAGE, "yml") if "image:" in block]
    job = yaml.safe_load(block)["gates"]
    shown = [line.removeprefix("$ ") for line in fenced(PAGE, "console")[0].splitlines()]
    assert shown == job["script"][2:]
    machine.run("python3", "-m", "venv", tmp_path / "python")
    environ = {
        "NOTYET": str(ROOT),
        "PATH": f"{tmp_path}/python/bin:{machine.environ['PATH']}",
    }
    lines = [line.replace("/tmp/notyet", str(tmp_path / "clone")) for line in job["script"]]  # noqa: S108
    said = machine.run("bash", "-e", "-c", "\n".join(lines), environ=environ, code=1)
    assert "✗ tests" in said
    (report,) = job["artifacts"]["reports"].values()
    root = ET.parse(machine.project / report).getroot()  # noqa: S314  # it is our own
    assert root.get("failures") == "1"
