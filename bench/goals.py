"""What was promised, each goal once: a result names it by its key, and the table says whether it was reached."""

from __future__ import annotations

from typing import NamedTuple

UNJUDGED = float("inf")  # the goal of what is measured for scale only


class Goal(NamedTuple):
    """A promise: its number, and its words."""

    words: str
    limit: float = UNJUDGED
    shape: str = ""  # of a curve: the worst that is all right
    bound: str = (
        ""  # what keeps the figure from being much lower; shown where the promise is missed
    )


GOALS = {
    # Whole processes, in multiples of `python -I -S -c pass`.
    "hook.nothing": Goal(
        "a stop where nothing applies",
        limit=1.1,
        bound="The floor is the start of the interpreter; on top come the launcher, which is compiled from its source each time so that it survives an upgrade of Python, the pack, the payload, and one look into each folder above for files of gates.",
    ),
    "hook.other": Goal(
        "a stop where there are gates, none of them for this agent",
        limit=1.1,
        bound="The same, and the file of gates is read and compared with what was trusted, gate by gate.",
    ),
    "hook.one": Goal(
        "a stop with one gate `true`, recorded",
        limit=2.0,
        bound="On top of the start come the code of the engine, loading SQLite, opening the ledger and two transactions in it, and starting the shell and the command itself.",
    ),
    "hook.five": Goal(
        "a stop with five gates, recorded",
        limit=2.5,
        bound="As with one gate, and four more shells and commands, which the cores of the machine share.",
    ),
    "hook.remembered": Goal(
        "a remembered pass on an unchanged tree of 10,000 files, beside two floors and one git status",
        limit=1.0,
        bound="git has to look at every file, and the hook waits for it; what the hook does beside it is the record, and the comparison of what git said with what it said at the pass.",
    ),
    # Decisions in process.
    "engine.loop": Goal(
        "3 guarded, recorded Python gates, in multiples of a plain loop",
        limit=5.0,
        bound="A plain loop neither survives a failing gate nor keeps it to a time limit; keeping a plain function to one takes a thread, and a hop there and back costs more than the rest of a decision.",
    ),
    "engine.pluggy": Goal(
        "the same, in multiples of doing it through pluggy",
        limit=1.0,
        bound="pluggy calls functions and collects what they return; a decision also guards, times and reports each of them.",
    ),
    # Commands.
    "commands.hundred": Goal(
        "100 parallel command gates, in multiples of spawning and reaping them",
        limit=1.2,
        bound="The kernel starts processes one after another; around each we open pipes and read them, keep a time limit, and write down what it printed.",
    ),
    "commands.end": Goal(
        "milliseconds from the last gate's own exit to the end",
        limit=100.0,
        bound="The end of a process is seen at once (a pidfd); then what it printed is read to the end.",
    ),
    "commands.background": Goal(
        "the same where the gate leaves a background child behind",
        limit=100.0,
        bound="A background child keeps the pipe open, so after the gate's own end we read what is there, and wait a moment for what is on its way.",
    ),
    "commands.memory": Goal(
        "megabytes at most while a gate prints a gigabyte",
        limit=64.0,
        bound="A bare interpreter needs some ten megabytes; of the output a head and a tail are kept.",
    ),
    "commands.survivors": Goal(
        "processes that survive a gate that ran out of time, setsid included",
        limit=0.0,
        bound="On Linux the hook adopts what leaves its group; elsewhere a process in a session of its own is out of reach.",
    ),
    # The ledger.
    "ledger.json": Goal(
        "times cheaper than a JSON registry of 100,000 decisions, written anew",
        limit=1_000,
        bound="A write costs what SQLite and the file system take for a few pages, whatever the number of decisions.",
    ),
    "ledger.p99": Goal(
        "milliseconds for 99 of 100 writes, at 1,000 writes/s from 8 processes",
        limit=5.0,
        bound="SQLite has one writer at a time, and a busy core may not give the writer its turn.",
    ),
    "ledger.max": Goal(
        "milliseconds of the slowest write, 8 processes writing all they can",
        limit=300.0,
        bound="SQLite has one writer at a time; the others queue, and a checkpoint in between is paid by one of them.",
    ),
    "ledger.million": Goal(
        "begin + record at 1,000,000 stops, in multiples of 1,000 stops",
        limit=1.5,
        bound="What a stop reads and writes is found by an index, whose depth grows with the logarithm of the rows.",
    ),
    "log.list": Goal(
        "milliseconds of `notyet log` on 1,000,000 stops",
        limit=1_000,
        bound="Reading the newest rows by an index, and the start of the interpreter.",
    ),
    "log.stats": Goal(
        "milliseconds of `notyet log --stats` on 1,000,000 stops",
        limit=1_000,
        bound="Statistics look at every report of the time that was asked for; counts are kept by an index that covers them.",
    ),
    "log.show": Goal(
        "milliseconds of `notyet log ID` on 1,000,000 stops",
        limit=1_000,
        bound="One row by its number, and the start of the interpreter.",
    ),
    # Growth.
    "growth.gates": Goal(
        "gates: 1 ... 1,000",
        shape="linear",
        bound="Each gate is a shell and a command, which the cores share.",
    ),
    "growth.config": Goal(
        "configuration: 10 ... 10,000 gates",
        shape="linear",
        bound="The file is read and compared with what was trusted, and who a gate is for is looked up for each of them.",
    ),
    "growth.ledger": Goal(
        "ledger: 1,000 ... 1,000,000 stops",
        shape="flat",
        bound="What a stop reads is found by an index.",
    ),
    "growth.transcript": Goal(
        "transcript: 1 MB ... 2 GB",
        shape="flat",
        bound="The transcript is read from its end, until the last message.",
    ),
    "growth.tasks": Goal(
        "supervised tasks: 1,000 ... 100,000",
        shape="flat",
        bound="What a task reads and writes is found by an index.",
    ),
    "growth.files": Goal(
        "repository: 100 ... 100,000 files",
        shape="linear",
        bound="git status looks at every file, and so does the comparison of what it said.",
    ),
}
