"""What tests of adapters share: gates that follow a script, and the examples of a page."""

from pathlib import Path

from notyet import Block, Command, Engine, Function, Gate, Match
from process_table import processes_with

PAGES = Path(__file__).parents[1] / "docs" / "how-to"
EVERY_AGENT = Match(events=("agent", "subagent"))


class Script:
    """A gate that blocks with these prompts in each turn, and an engine that has only it."""

    def __init__(self, *prompts, **options):
        self.prompts = prompts
        self.events = []
        self.decisions = []
        self.warnings = []
        gate = Gate(name="script", check=Function(self), match=EVERY_AGENT)
        self.engine = Engine([gate], warn=self.warnings.append, **options)
        self.engine.on("decision", lambda event, decision: self.decisions.append(decision))

    def __call__(self, event):
        self.events.append(event)
        left = self.prompts[event.block_count :]
        return Block(left[0]) if left else None

    @property
    def outcomes(self):
        return [decision.outcome for decision in self.decisions]

    def of(self, scope):
        """Return the events of the main agent, or of subagents."""
        return [event for event in self.events if event.scope == scope]


class SlowCommand:
    """An engine with a gate whose command does not end."""

    def __init__(self, folder):
        self.begun = Path(folder) / "begun"
        check = Command(script='touch "$BEGUN"; exec sleep 60', env=(("BEGUN", str(self.begun)),))
        self.engine = Engine([Gate(name="slow", check=check)])

    @property
    def has_begun(self):
        return self.begun.exists()

    @property
    def is_gone(self):
        return not processes_with(f"BEGUN={self.begun}")


def run_page(name):
    """Run the Python blocks of a page in order, and return what they define."""
    defined = {"__name__": name}
    for block in (PAGES / name).read_text().split("```python\n")[1:]:
        exec(compile(block.split("```")[0], name, "exec"), defined)
    return defined
