"""What the tests of gates that are asked only when it matters share (N1)."""

from pathlib import Path

from conftest import git
from notyet import Command, Engine, Gate, Match
from notyet.core.event import StartEvent
from notyet.core.gate import Source
from notyet.engine.unchanged import remember_start
from notyet.run.drive import drive_sync
from support import EVERY_SCOPE, stop


class Place:
    """A project with one gate that leaves a mark outside of it whenever it is asked."""

    def __init__(self, project, folder, ledger=None, **gate):
        self.project = Path(project)
        self.marks = Path(folder) / "marks"
        self.ledger = ledger
        self.warnings = []
        self.gates = [self.gate(**gate)]
        self.messages = 0

    def gate(self, name="g", then="test ! -e bad", folder=None, **fields):
        folder = self.project if folder is None else folder
        check = Command(script=f"echo {name} >> '{self.marks}'; {then}", dir=str(folder))
        known = {
            "when": "changed",
            "source": Source(f"{folder}/notyet.toml", 1),
            "match": Match(events=EVERY_SCOPE),
        }
        return Gate(name=name, check=check, **(known | fields))

    def engine(self):
        """Make an engine as another process would, on the same ledger."""
        return Engine(self.gates, ledger=self.ledger, warn=self.warnings.append)

    def begin(self, *, since=None, **fields):
        """An agent begins, as the hook is told; its host began at a time, by the clock."""
        fields = {"session_id": "s1", "cwd": str(self.project)} | fields
        drive_sync(remember_start(StartEvent(**fields), self.gates, self.ledger, 5.0, since=since))

    def stop(self, *, within=None, **fields):
        """An agent stops; what it says is never the same."""
        self.messages += 1
        event = {"cwd": str(self.project), "last_message": f"{self.messages}"} | fields
        return self.engine().check_sync(stop(**event), within=within)

    @property
    def asked(self):
        """Which gates were asked, since the last time that somebody looked."""
        said = self.marks.read_text().split() if self.marks.exists() else []
        self.marks.unlink(missing_ok=True)
        return said

    def write(self, name="file.txt", text="changed\n"):
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def git(self, *args):
        git(self.project, *args)


def statuses(decision):
    return {report.gate: report.status for report in decision.reports}
