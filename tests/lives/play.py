"""Random things happen to tasks; after each, the ledger must say what the model says."""

import asyncio
import json
import os
import sqlite3
import tempfile
from contextlib import closing

from lives.model import MAX_BLOCKS, Model
from lives.puppets import Agent, Clock
from lives.stage import A_WHILE, MOST_TASKS, PATIENT, Stage
from notyet.core.session import News, Turn
from notyet.errors import Refused


class Play(Stage):
    """One life: whatever its choices make happen."""

    def __init__(self, folder, choices):
        super().__init__(folder)
        self.choices = choices
        self.detail = 0
        self.log = []
        self.models = {}
        self.crashes = {}  # run -> how often its supervisor died while its gate was asked
        self.said = 0

    def choose(self, number):
        """Return the thing that a number stands for now; what is left of it chooses the details."""
        options = self.steps()
        self.detail, which = divmod(number, len(options))
        return options[which]

    def word(self):
        self.said += 1
        return f"word {self.said}."

    async def run(self):
        self.supervisor = self.raised()
        await self.supervisor.__aenter__()
        steps = 0
        try:
            for number in self.choices:
                await self.take(self.choose(number))
                steps += 1
            await self.drain()
        finally:
            await self.leave()
        return steps

    async def take(self, step):
        """Let something happen, and look what came of it."""
        does, *about = step
        self.log.append(" ".join([does.__name__, *(self.name(each) for each in about)]))
        await does(*about)
        await self.quiet()
        self.compare()

    def name(self, word):
        model = self.models.get(word)
        return str(word) if model is None else f"[{model.agent.name}, {model.state}]"

    # -- what can happen next

    def steps(self):
        found = [(self.time_passes,), (self.crash, "dead"), (self.crash, "silent")]
        active = [task for task, model in self.models.items() if model.is_active]
        if len(active) < MOST_TASKS:
            found += [(self.spawn, None)] * 6
        for task, model in self.models.items():
            sending = model.agent.sending
            found += [(self.late_signal, task)]
            if task in self.consumer.offered:
                found += [(self.consume, task, w) for w in ("take", "take", "not now", "never")]
            if not model.is_active:
                found += [(self.too_late, task, what) for what in ("say", "kill")]
                continue
            if len(active) < MOST_TASKS and model.state == "running" and model.parent is None:
                found += [(self.spawn, task)] * 2
            if model.state in {"running", "steering"} and not sending.answer.done():
                found += [(self.end_turn, task, how) for how in ("done", "done", "error", "odd")]
                found += [(self.end_turn, task, "cancelled")]
                if not sending.has_arrived:
                    found += [(self.arrive, task)] * 4 + [(self.refuse, task)]
            if model.state == "gating":
                found += [
                    (self.judge, task, w) for w in ("allow", "block", "block", "halt", "fault")
                ]
            found += [(self.signal, task, how) for how in ("done", "error", "news")]
            found += [(self.say, task), (self.say, task), (self.steer, task)]
            found += [(self.by_hand, task, what) for what in ("kill", "reset", "interrupt")]
        return found

    async def spawn(self, parent):
        agent = Agent(f"agent {len(self.agents)}", remembers=bool(self.detail % 3))
        self.agents[agent.name] = agent
        has_timeout = self.detail // 3 % 4 == 0
        timeout = PATIENT.grace if has_timeout else None
        handle = await self.supervisor.spawn(
            agent.session(), f"do {agent.name}", parent=parent, timeout=timeout
        )
        above = self.models[parent] if parent else None
        self.models[handle.task_id] = Model(agent, above, has_timeout=has_timeout)

    async def arrive(self, task):
        model = self.models[task]
        model.agent.sending.arrive()
        if model.state == "steering":
            model.accept()

    async def refuse(self, task):
        model = self.models[task]
        model.agent.sending.refuse()
        if model.state == "steering":
            model.fail_steer()
        else:
            model.finish("error", "")
            model.is_over = True  # what certainly did not arrive does not heal
            model.settle()

    async def end_turn(self, task, how):
        model, text = self.models[task], self.word()
        if how == "odd":
            text = ""
        endings = {"done": "end_turn", "odd": "max_tokens"}
        error = "it broke" if how == "error" else None
        turn = Turn(text=text, stop_reason=endings.get(how, how), error=error)
        model.agent.sending.end(turn)
        if model.state == "steering":
            model.accept()
        if how == "cancelled":
            model.end("interrupted", text=text)
        else:
            model.finish("error" if how == "error" else "done", text)

    async def signal(self, task, how):
        """A completion seen on another way, perhaps a second one (K5)."""
        model, text = self.models[task], self.word()
        run = f"{task}.{model.generation}"
        before = model.state, model.run_ending
        turn = Turn(text=text, stop_reason="error" if how == "error" else "end_turn")
        if how == "news":
            session = model.agent.sending.session
            run_of_news = model.state != "steering" and not model.agent.sending.answer.done()
            if run_of_news:
                session.on_news(News(kind="ended", turn=turn))
                model.finish("done", text)
            return
        model.finish("error" if how == "error" else "done", text)
        took = await self.supervisor.finish(run, turn)
        assert took == ((model.state, model.run_ending) != before), "a signal was taken amiss"

    async def late_signal(self, task):
        """A superseded run, or one that has ended, says that it is done."""
        model = self.models[task]
        generation = model.generation - model.is_active
        if generation:
            assert not await self.supervisor.finish(f"{task}.{generation}", Turn(text="late"))

    async def judge(self, task, word):
        model = self.models[task]
        run = f"{task}.{model.generation}"
        assert run not in self.gate.answered, f"{run} was judged twice"
        self.gate.answer(run, word)
        model.decide(word)

    async def say(self, task):
        text = self.word()
        self.models[task].say(text)
        await self.supervisor.say(task, text)

    async def steer(self, task):
        model = self.models[task]
        if model.state == "steering":
            await self._refused(self.supervisor.steer(task, self.word()))
            return
        model.steer()
        await self.supervisor.steer(task, self.word())

    async def by_hand(self, task, what):
        endings = {"kill": "killed", "reset": "reset", "interrupt": "interrupted"}
        self.models[task].end_all(endings[what])
        assert await getattr(self.supervisor, what)(task)

    async def too_late(self, task, what):
        if what == "kill":
            assert not await self.supervisor.kill(task)
        else:
            await self._refused(self.supervisor.say(task, "too late"))

    async def _refused(self, call):
        try:
            await call
        except Refused:
            return
        raise AssertionError("it was not refused")

    async def consume(self, task, word):
        self.consumer.answer(task, word)
        if word != "not now":
            self.heard(task)

    def heard(self, task):
        model = self.models[task]
        model.is_heard = True
        if model.parent is not None and model.parent.run_ending != "error":
            model.parent.settle()
        self.waiting_for_grace()

    def waiting_for_grace(self):
        """Whose error was found to be one goes on as soon as its children are heard."""
        for model in self.models.values():
            if model.state == "settling" and model.is_over:
                model.settle()

    async def time_passes(self):
        asyncio.get_running_loop().ahead += A_WHILE
        for model in self.models.values():
            if model.state == "running" and model.has_timeout:
                model.finish("timeout", "")
            elif model.state == "steering" and model.has_timeout:
                model.miss_steer()
            elif model.state == "settling" and model.run_ending == "error":
                model.is_over = True
                model.settle()

    async def crash(self, kind):
        """The supervisor's process ends, or is silent for so long that it counts as dead."""
        self.lose_supervisor(kind)
        before = dict(self.models)
        for task, model in before.items():
            if model.state == "gating":
                run = f"{task}.{model.generation}"
                self.crashes[run] = self.crashes.get(run, 0) + 1
            model.crash()
        self.supervisor = self.raised()
        await self.supervisor.__aenter__()
        await self.supervisor.recover()
        for model in before.values():
            if model.state == "settling":
                model.is_over = True

    # -- what must be true

    def rows(self):
        with closing(sqlite3.connect(self.ledger.path)) as db:
            sql = (
                "SELECT tasks.id, runs.state, tasks.generation, runs.source, tasks.steers,"
                " (SELECT count(*) FROM outbox WHERE task = tasks.id),"
                " (SELECT result FROM outbox WHERE task = tasks.id), tasks.ended_at"
                " FROM tasks JOIN runs ON runs.id = tasks.run"
            )
            return {row[0]: row[1:] for row in db.execute(sql)}

    def compare(self):
        found = self.rows()
        assert set(found) == set(self.models)
        for task, model in self.models.items():
            state, generation, source, steers, count, result, _ = found[task]
            said = (state, generation, source, steers, count)
            is_ended = not model.is_active
            meant = (model.state, model.generation, model.source, model.steers, int(is_ended))
            assert said == meant, f"{task}: the ledger says {said}, the model {meant}"
            assert steers <= MAX_BLOCKS
            if is_ended:
                known = json.loads(result)
                said = (known["ending"], known["outcome"], known["text"], tuple(known["unsent"]))
                meant = (model.ending, model.outcome, model.text, model.unsent)
                assert said == meant, f"{task}: it ended {said}, meant was {meant}"
                earlier = "" if model.text.strip() else model.earlier
                assert known["rejected"] == earlier
            elif model.state == "gating":
                assert f"{task}.{generation}" in self.gate.asked, f"{task}: nobody is asked"
            elif model.state in {"running", "steering"}:
                assert not model.agent.sending.answer.done(), f"{task}: nobody works"
            keys = [key for key, _ in model.agent.got]
            assert len(keys) == len(set(keys)), f"{task}: a prompt arrived twice"

    async def drain(self):
        """Let everything come to its end, and look whether anything was lost."""
        for _ in range(200):
            work = [
                step for step in self.steps() if step[0].__name__ in {"arrive", "consume", "judge"}
            ]
            work = [step for step in work if step[-1] not in {"not now", "never", "block", "fault"}]
            work += [(self.end_turn, t, "done") for t, m in self.models.items() if self._can_end(m)]
            if not work:
                await self.take((self.time_passes,))
                if all(model.is_heard for model in self.models.values()):
                    break
                continue
            await self.take(work[0])
        self.finally_true()

    def _can_end(self, model):
        return model.state == "running" and model.agent.sending.has_arrived

    def finally_true(self):
        found = self.rows()
        for task, model in self.models.items():
            assert not model.is_active, f"{task} is left {model.state}"
            assert model.is_heard, f"{task}: nobody heard of it"
            assert self.observed.get(task, 0) >= 1, f"{task}: no observer was told"
            ended = found[task][-1]
            for other, child in self.models.items():
                if child.parent is model and not model.is_cut_off:
                    assert found[other][-1] <= ended, f"{task} ended before its child"
            got = "\n".join(prompt for _, prompt in model.agent.got)
            for text in model.unsent:
                assert text not in got, f"{task}: {text} was sent, and is listed as unsent"
            for text in model.sent:
                assert got.count(text) == 1, f"{task}: {text} arrived {got.count(text)} times"
            for run, count in self.gate.questions.items():
                assert count <= 1 + self.crashes.get(run, 0), f"{run} was asked {count} times"


def play(choices):
    """Live through these choices; return how many steps it took."""
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108  # a folder of our own in it
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as folder:
        it = Play(folder, choices)
        with asyncio.Runner(loop_factory=Clock) as runner:
            try:
                return runner.run(it.run())
            except BaseException as error:
                error.add_note("\n".join(it.log[-60:]))
                raise
            finally:
                it.ledger.close()
