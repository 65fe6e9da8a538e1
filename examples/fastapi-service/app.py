r"""A service whose own agent may not answer before its gates pass.

    pip install -r requirements.txt
    uvicorn app:app
    curl -H 'content-type: application/json' -d '{"question": "When do you open?"}' \
        localhost:8000/answers

The model is scripted, so this needs no key; set MODEL=openai:gpt-5 or the like for a real one.
An answer is sent back at most three times; the service says of one that still fails that it does.
"""

import os
from contextvars import ContextVar

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from notyet import Block, Decision, Engine, Limits, Observer, StopEvent
from notyet.frameworks.pydantic_ai import Gated

OPENING_HOURS = "Monday to Friday, 9 to 17"
_outcomes: ContextVar[list[str]] = ContextVar("outcomes of the request's stops")


def source_is_named(event: StopEvent) -> Block | None:
    """Hold an answer that does not say where it is from."""
    if "Source:" in (event.last_message or ""):
        return None
    return Block("Say where the answer is from, in a line that begins with `Source:`.")


def remember(_event: StopEvent, decision: Decision) -> None:
    """Note the outcome of a stop for the request that the agent works on."""
    _outcomes.get().append(decision.outcome)


def scripted(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Answer without a source at first, and with one when sent back."""
    is_sent_back = "Source:" in str(messages[-1])
    source = "\nSource: the page of our shop" if is_sent_back else ""
    return ModelResponse([TextPart(f"We open {OPENING_HOURS}.{source}")])


class Question(BaseModel):
    question: str


class Answer(BaseModel):
    answer: str
    passed: bool  # False: the gates still failed at the limit, or could not run


engine = Engine(
    [source_is_named],
    observers=[Observer("decision", remember)],
    limits=Limits(max_blocks=3),
)
agent = Agent(os.environ.get("MODEL") or FunctionModel(scripted), capabilities=[Gated(engine)])
app = FastAPI()


@app.post("/answers")
async def answer(question: Question) -> Answer:
    """Answer a question, and say whether the answer passed the gates."""
    outcomes: list[str] = []
    _outcomes.set(outcomes)
    result = await agent.run(question.question)
    return Answer(answer=result.output, passed=outcomes[-1:] == ["passed"])
