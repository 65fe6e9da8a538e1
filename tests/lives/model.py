"""What a task should come to: the rules of the supervisor, written down a second time."""

MAX_BLOCKS = 2


class Model:
    """One task. Each method is something that happens to it; the fields say what must be true."""

    def __init__(self, agent, parent=None, *, has_timeout=False):
        self.agent = agent
        self.parent = parent
        self.children = []
        self.has_timeout = has_timeout
        self.state = "running"
        self.generation = 1
        self.source = "start"
        self.steers = 0
        self.blocks = 0  # of the whole task: a subagent's is one turn
        self.run_ending = None  # of the run, while it settles
        self.run_text = ""
        self.is_over = False  # the time in which an error may heal
        self.earlier = ""  # the last answer with words of a run that was continued
        self.waiting = []  # messages of the user
        self.taken = []  # by the steer in flight
        self.sent = []
        self.next_source = ""
        self.ending = None
        self.outcome = None
        self.text = ""
        self.unsent = ()
        self.is_cut_off = False  # it could not be continued, whatever its children do
        self.is_heard = False  # its result was taken, or given up
        if parent is not None:
            parent.children.append(self)

    @property
    def is_active(self):
        return self.state != "ended"

    def finish(self, ending, text):
        """A completion was signalled; what was not running any more takes no notice."""
        if self.state == "running" or (
            self.state == "settling" and (self.run_ending, ending) == ("error", "done")
        ):
            self.state = "settling"
            self.run_ending, self.run_text = ending, text
            if ending != "error" or self.waiting:  # no message waits for an error to heal
                self.settle()

    def settle(self):
        """The grace period is over. The gates wait for children, and messages for nobody."""
        if self.state != "settling":
            return
        if self.waiting:
            self._reserve("user")
            self.taken, self.waiting = self.waiting, []
        elif not any(child.is_active or not child.is_heard for child in self.children):
            self.state = "gating"

    def _reserve(self, source):
        self.state, self.next_source = "steering", source

    def decide(self, word):
        if word == "block" and self.blocks < MAX_BLOCKS:
            self.blocks += 1
            self.steers += 1
            self._reserve("gate")
            return
        outcomes = {"allow": "passed", "block": "capped", "halt": "halted", "fault": "failed_open"}
        self.end(self.run_ending, outcomes[word], self.run_text)

    def steer(self):
        self._reserve("manual")

    def say(self, text):
        self.waiting.append(text)
        if self.state == "gating":
            self._reserve("user")
            self.taken, self.waiting = self.waiting, []
        else:
            self.settle()

    def accept(self):
        self.state, self.source = "running", self.next_source
        self.generation += 1
        self.sent += self.taken
        self.earlier = self.run_text if self.run_text.strip() else self.earlier
        self.taken, self.run_ending, self.run_text = [], None, ""
        self.is_over = False

    def miss_steer(self):
        """There was no sign of a steer in its time; whether it arrived, not all agents know."""
        if self.agent.remembers:
            self.fail_steer()
            return
        self.taken = []  # these may have arrived, and are not sent again
        self.accept()
        self.finish("timeout", "")

    def fail_steer(self):
        self.is_cut_off = True
        is_gates = self.next_source == "gate"
        self.steers -= is_gates  # it was not sent back after all
        outcome = "failed_open" if is_gates else "skipped"
        self.end(self.run_ending or "interrupted", outcome, self.run_text)

    def end(self, ending, outcome="skipped", text=None):
        self.state, self.ending, self.outcome = "ended", ending, outcome
        self.is_cut_off |= ending == "interrupted"
        self.text = self.run_text if text is None else text
        self.unsent = (*self.taken, *self.waiting)
        self.taken, self.waiting = [], []

    def end_all(self, ending):
        for child in self.children:
            if child.is_active:
                child.end_all(ending)
        self.end(ending)

    def crash(self):
        """Its supervisor died, and another one takes over."""
        sending = self.agent.sending
        if self.state in {"running", "steering"}:
            if sending.has_arrived or not self.agent.remembers:
                self.end("interrupted", text=self.run_text if self.state == "steering" else "")
        elif self.state == "settling":
            self.settle()
