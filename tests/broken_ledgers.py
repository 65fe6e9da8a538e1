"""Ledgers with one defect each, for the conformance to find."""

import threading
import time

from notyet import replace
from notyet.ledger.memory import MemoryLedger


class Changed(MemoryLedger):
    """A ledger that keeps histories otherwise than it should."""

    def _remember(self, agent, history):
        super()._remember(agent, self.kept(self._histories.get(agent), history))


class CountsFromZero(MemoryLedger):
    def __init__(self):
        super().__init__()
        self._stops = -1


class KnowsOneTurnId(Changed):
    def kept(self, old, new):
        return replace(new, turn_ids=new.turn_ids[-1:])


class OneAgentPerSession(MemoryLedger):
    def begin(self, event, patience=None):
        return super().begin(replace(event, agent_id=None), patience)


class RefusesOddIds(MemoryLedger):
    def begin(self, event, patience=None):
        event.session_id.encode()
        return super().begin(event, patience)


class CountsLater(MemoryLedger):
    def record(self, begun, decision, ceiling=0, patience=None):
        agent = self._asking[begun.stop].agent
        before = self._histories[agent]
        final = super().record(begun, decision, ceiling)
        counted, self._histories[agent] = self._histories[agent], before
        timer = threading.Timer(0.2, self._histories.update, ({agent: counted},))
        timer.daemon = True
        timer.start()
        return final


class NeverRefills(Changed):
    def kept(self, old, new):
        same_turn = old is not None and old.turn == new.turn
        return replace(new, blocks=max(old.blocks, new.blocks)) if same_turn else new


class RefillsTheSession(Changed):
    def kept(self, old, new):
        return new if new.blocks else replace(new, session_blocks=0)


class ForgetsExtensions(Changed):
    def kept(self, old, new):
        return replace(new, extend=0)


class ForgetsFailures(Changed):
    def kept(self, old, new):
        return replace(new, repeats=0, repeat_key="")


class SpendsTheNewTurn(MemoryLedger):
    def record(self, begun, decision, ceiling=0, patience=None):
        history = self._histories[self._asking[begun.stop].agent]
        return super().record(begun, replace(decision, turn=history.turn), ceiling)


class BelievesTheDecision(MemoryLedger):
    def record(self, begun, decision, ceiling=0, patience=None):
        return super().record(begun, replace(decision, limit=10**9), ceiling)


class IgnoresTheCeiling(MemoryLedger):
    def record(self, begun, decision, ceiling=0, patience=None):
        return super().record(begun, decision)


class KnowsNoEqualStops(MemoryLedger):
    def _repeated(self, agent, event, history):
        return 0


class ComparesTooLittle(MemoryLedger):
    def begin(self, event, patience=None):
        return super().begin(replace(event, result=None), patience)


class RepeatsForever(MemoryLedger):
    def _repeated(self, agent, event, history):
        for stop in self._decided.values():
            stop.repeated = 0
        return super()._repeated(agent, event, history)


class IgnoresTheFlag(MemoryLedger):
    def _repeated(self, agent, event, history):
        with_flag = replace(event, stop_hook_active=False)
        for stop in self._decided.values():
            stop.event = replace(stop.event, stop_hook_active=False)
        return super()._repeated(agent, with_flag, history)


class RepeatsAnyAnswer(MemoryLedger):
    def _repeated(self, agent, event, history):
        for number, stop in self._decided.items():
            if stop.agent == agent and stop.event == event and stop.decision is not None:
                return number
        return super()._repeated(agent, event, history)


class DoesNotWait(MemoryLedger):
    def answer(self, stop, patience):
        return super().answer(stop, 0)


class WakesNobody(MemoryLedger):
    def give_up(self, begun, patience=None):
        self._asking.pop(begun.stop, None)


class KeepsNoReports(MemoryLedger):
    def answer(self, stop, patience):
        answer = super().answer(stop, patience)
        return answer and replace(answer, reports=())


class GivesUpAnswers(MemoryLedger):
    def give_up(self, begun, patience=None):
        super().give_up(begun)
        self._decided.pop(begun.stop, None)


class CountsTwice(MemoryLedger):
    def record(self, begun, decision, ceiling=0, patience=None):
        if begun.stop in self._decided:
            self._asking[begun.stop] = self._decided[begun.stop]
        return super().record(begun, decision, ceiling)


class RaisesKeyErrors(MemoryLedger):
    def record(self, begun, decision, ceiling=0, patience=None):
        self._asking[begun.stop]
        return super().record(begun, decision, ceiling)


class CountsSkips(MemoryLedger):
    def skip(self, event, decision, patience=None):
        begun = self.begin(event)
        self.record(begun, replace(decision, turn=begun.history.turn))


class LosesRaces(MemoryLedger):
    def record(self, begun, decision, ceiling=0, patience=None):
        agent = self._asking[begun.stop].agent if begun.stop in self._asking else None
        before = self._histories.get(agent)
        time.sleep(0.001)
        self._histories[agent] = before
        return super().record(begun, decision, ceiling)


class EntersWithoutALock(MemoryLedger):
    def _repeated(self, agent, event, history):
        found = super()._repeated(agent, event, history)
        self._changed.wait(0.002)  # which lets others in
        return found


class HasNoPatience(MemoryLedger):
    def skip(self, event, decision):
        pass


class BelongsToOneThread(MemoryLedger):
    def __init__(self):
        super().__init__()
        self.thread = threading.get_ident()

    def begin(self, event, patience=None):
        if threading.get_ident() != self.thread:
            raise RuntimeError("used in another thread")
        return super().begin(event, patience)


class RemembersFailures(MemoryLedger):
    def recall(self, event, wanted, patience=None):
        return {one.gate: "passed" for one in wanted if one.tree}


class SparesTheUnknown(MemoryLedger):
    def remember(self, reports, patience=None):
        self._passes |= dict.fromkeys((r.definition, r.passed_on) for r in reports)

    def recall(self, event, wanted, patience=None):
        known = [one for one in wanted if (one.definition, one.tree) in self._passes]
        return dict(super().recall(event, wanted)) | {one.gate: "passed" for one in known}


class PassesByName(MemoryLedger):
    def remember(self, reports, patience=None):
        super().remember([replace(r, definition=r.gate) for r in reports if r.definition])

    def recall(self, event, wanted, patience=None):
        return super().recall(event, [replace(one, definition=one.gate) for one in wanted])


class ForgetsPassesOfStops(MemoryLedger):
    def record(self, begun, decision, ceiling=0, patience=None):
        bare = replace(decision, reports=tuple(replace(r, passed_on="") for r in decision.reports))
        return replace(super().record(begun, bare, ceiling), reports=decision.reports)


class MovesTheStart(MemoryLedger):
    def remember_start(self, event, trees, patience=None):
        self._starts.pop((event.host, event.session_id, event.agent_id or ""), None)
        super().remember_start(event, trees)


class AddsToTheStart(MemoryLedger):
    def remember_start(self, event, trees, patience=None):
        agent = (event.host, event.session_id, event.agent_id or "")
        self._starts[agent] = dict(trees) | self._starts.get(agent, {})


class StartsOnlyWhatIsKnown(MemoryLedger):
    def remember_start(self, event, trees, patience=None):
        super().remember_start(event, {scope: tree for scope, tree in trees.items() if tree})


class OneStartPerSession(MemoryLedger):
    def recall(self, event, wanted, patience=None):
        return super().recall(replace(event, agent_id=None), wanted)


class NoStartOfTheSession(MemoryLedger):
    def recall(self, event, wanted, patience=None):
        self._starts = {a: s for a, s in self._starts.items() if a[2] == (event.agent_id or "")}
        return super().recall(event, wanted)


class KeepsRefutedPasses(MemoryLedger):
    def remember(self, reports, patience=None):
        super().remember([replace(r, failed_on="") for r in reports])


class StartsAnew(MemoryLedger):
    def remember_start(self, event, trees, patience=None):
        self._histories.pop((event.host, event.session_id, event.agent_id or ""), None)
        super().remember_start(event, trees)


class KnowsNoTasks(MemoryLedger):
    def recall(self, event, wanted, patience=None):
        return super().recall(replace(event, task_id=None), wanted)


class PrefersUnchanged(MemoryLedger):
    def recall(self, event, wanted, patience=None):
        unasked = [replace(one, definition="") for one in wanted]
        return dict(super().recall(event, wanted)) | dict(super().recall(event, unasked))
