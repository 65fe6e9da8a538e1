"""Agents, gates and consumers that do nothing until they are told to, and a clock to move."""

import asyncio

from notyet import Block, Halt
from notyet.core.session import News, Turn
from notyet.errors import SendError, Undeliverable


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time can be moved on: what waits for hours is due at once."""

    ahead = 0.0

    def time(self):
        return super().time() + self.ahead


class Sending:
    """One prompt on its way: offered, then arrived, then answered."""

    def __init__(self, agent, prompt, key, session):
        self.agent = agent
        self.prompt = prompt
        self.key = key
        self.session = session
        self.has_arrived = False
        self.answer = asyncio.get_running_loop().create_future()

    def arrive(self):
        self.has_arrived = True
        self.agent.got.append((self.key, self.prompt))
        self.session.on_news(News(kind="accepted"))

    def end(self, turn):
        if not self.has_arrived:  # an agent that gives no sign before its answer
            self.has_arrived = True
            self.agent.got.append((self.key, self.prompt))
        self._resolve(turn)

    def refuse(self):
        if not self.answer.done():
            self.answer.set_exception(SendError("the agent is not there"))

    def cancel(self):
        self._resolve(Turn(text="", stop_reason="cancelled"))

    def _resolve(self, turn):
        if not self.answer.done():
            self.answer.set_result(turn)


class Agent:
    """What outlives a supervisor: the conversation, and the prompt that is on its way."""

    def __init__(self, name, *, remembers):
        self.name = name
        self.remembers = remembers
        self.got = []
        self.sending = None

    def session(self):
        return Session(self)


class Session:
    def __init__(self, agent):
        self.agent = agent
        self.id = agent.name
        self.on_news = None
        self.sending = None

    def ref(self):
        return {"agent": self.agent.name}

    async def send(self, prompt, key):
        sending = Sending(self.agent, prompt, key, self)
        self.agent.sending = self.sending = sending
        return await sending.answer

    def knows(self, key):
        if not self.agent.remembers:
            return None
        return any(known == key for known, _ in self.agent.got)

    async def abort(self):
        sending = self.sending or self.agent.sending  # its own; reopened, that of the dead
        if sending is not None:
            sending.cancel()

    def transcript(self):
        return None


class Gate:
    """Asked about runs; each question stays open until somebody answers it."""

    def __init__(self):
        self.asked = {}  # run -> the open question
        self.questions = {}  # run -> how often
        self.answered = set()

    async def __call__(self, event):
        question = asyncio.get_running_loop().create_future()
        self.asked[event.run_id] = question
        self.questions[event.run_id] = self.questions.get(event.run_id, 0) + 1
        try:
            return await question
        finally:
            if self.asked.get(event.run_id) is question:
                del self.asked[event.run_id]

    def answer(self, run, word):
        self.answered.add(run)
        question = self.asked[run]
        if word == "fault":
            question.set_exception(ValueError("a gate that breaks"))
            return
        answers = {"allow": None, "block": Block(f"go on after {run}"), "halt": Halt("enough")}
        question.set_result(answers[word])


class Consumer:
    """Takes results when it is told to; knows what it had by the key."""

    def __init__(self):
        self.offered = {}  # task -> (announcement, the open question)
        self.had = {}  # key -> result

    async def __call__(self, announcement):
        question = asyncio.get_running_loop().create_future()
        self.offered[announcement.result.task_id] = announcement, question
        await question

    def answer(self, task, word):
        announcement, question = self.offered.pop(task)
        if question.done():
            return
        if word == "take":
            known = self.had.setdefault(announcement.key, announcement.result)
            assert known == announcement.result, "a result changed between two deliveries"
            question.set_result(None)
        elif word == "not now":
            question.set_exception(OSError("not now"))
        else:
            question.set_exception(Undeliverable("never"))
