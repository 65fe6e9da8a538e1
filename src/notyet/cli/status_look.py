"""What the hook would do with a stop before it asks a gate, found out by the hook's own code."""

from __future__ import annotations

from notyet.cli.hook_check import completed
from notyet.cli.hook_input import Call, Options
from notyet.cli.hook_line import Hook, answered
from notyet.config.load import NO_LOOK
from notyet.core.plan import select
from notyet.core.verdict import skipped
from notyet.deciding import NO_SESSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.cli.about_event import About
    from notyet.config.setup import Setup
    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.verdict import Decision
    from notyet.dialects import Reply

_OTHERS = "NOTYET_PROBE"  # of `notyet status` itself


class Looked(Hook):
    """A call of the hook that asks and records nothing; `cause` is why no gate would be asked."""

    sees_all = True

    def __init__(
        self, stop: About, event: StopEvent, environ: Mapping[str, str], workspace: str = ""
    ) -> None:
        argv = ["--host", stop.host] if stop.host else []
        kept = {name: value for name, value in environ.items() if name != _OTHERS}
        super().__init__(Call(Options(argv), kept, lambda: stop.content), _prepare_nothing)
        self.host = event.host
        self.cause = ""
        self.words: tuple[str, ...] = ()
        self.stop = event
        self._about, self.workspace = stop, workspace
        self._setup: Setup | None = None

    @property
    def setup(self) -> Setup:
        """What is in force where the agent works."""
        return self.load(self.stop, NO_LOOK) if self._setup is None else self._setup

    def look(self) -> None:
        """Go the way of the hook, as far as its gates."""
        answered(self)
        self.stop = completed(self.stop, self.setup)

    def stopping(self, event: StopEvent) -> Reply:
        """Answer a stop, with what the options say in place of what its payload says."""
        self.event = self.stop = self._about.changed(event)
        return super().stopping(self.stop)

    def load(self, event: StopEvent | StartEvent, _longest: float) -> Setup:
        """Return what is in force; no other machine is asked for it."""
        self._setup = super().load(event, NO_LOOK)
        return self._setup

    def check(self, event: StopEvent, setup: Setup) -> Decision:
        """Ask nobody; only say whether somebody would be."""
        if not select(event, setup.gates):
            return skipped("no-gate")
        if not event.session_id.strip():
            self.write_down("no-session", (NO_SESSION,))
        return skipped("looked")

    def write_down(self, cause: str, words: Sequence[str]) -> Sequence[str]:
        """Keep why the agent is let go unchecked."""
        self.cause, self.words = cause, tuple(words)
        return ()

    def mended(self) -> Sequence[str]:
        """Say nothing: no ledger is mended here."""
        return ()

    def recover(self, error: Exception) -> Reply:
        """Let whoever asks see a fault of ours."""
        raise error


def _prepare_nothing() -> None:
    """Prepare for gates that are not asked."""
