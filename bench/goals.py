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
        bound="Three quarters are the interpreter's own start, which a bare one has too (its orderly end, which a hook leaves out, is the rest of that); compiling the launcher, which is source so that any Python can run it, is 4 %; unmarshalling and running the door's modules out of the pack, with a look at each of their source files, is most of what is left.",
    ),
    "hook.other": Goal(
        "a stop where there are gates, none of them for this agent",
        limit=1.1,
        bound="The same, and the record of what was trusted is read and compared with the file; no gate is built, and no ledger opened.",
    ),
    "hook.one": Goal(
        "a stop with one gate `true`, recorded",
        limit=2.0,
        bound="On top of the start come the code of the engine, loading SQLite (libsqlite3 and its Python module: a tenth of a bare start), opening the ledger and parsing its schema (another 6 %), two transactions (4 %), and starting the shell and the command itself, which nobody can spare.",
    ),
    "hook.five": Goal(
        "a stop with five gates, recorded",
        limit=2.5,
        bound="As with one gate, and four more shells and commands, which the cores of the machine share.",
    ),
    "hook.remembered": Goal(
        "a remembered pass on an unchanged tree of 10,000 files, beside two floors and one git status",
        limit=1.0,
        bound="Git has to look at every file (10,000 calls of lstat and a walk through the folders), and the hook waits for it. Before git can be started come the interpreter, the configuration and the code that knows which files matter; while it runs the ledger is opened, and a second git lists the index; after it only the question to the ledger, and the record. On two cores that are busy otherwise git's own threads and the hook share them.",
    ),
    "hook.members": Goal(
        "a project with 100 members, in multiples of one without",
        limit=1.2,
        bound="Which members changed is told by one look of git at the whole repository; only their files are read. Trusted members are listed from the records of trust, one folder each.",
    ),
    # Decisions in process.
    "engine.loop": Goal(
        "3 guarded, recorded Python gates, in multiples of a plain loop",
        limit=5.0,
        bound="A plain loop awaits three functions that do nothing (under 1 us). A decision also selects, plans, gives each gate a copy of the event and a task of its own, guards, times, reports and settles, and hands out an immutable Decision with a Report for each gate. Counted in instructions on Python 3.11, that is 33 times the loop (it was 45), in time more; a third of it are the three tasks with their guards and reports, a tenth the copies of the event, most of the rest is paid once for a decision. A multiple of five of *nothing* is out of reach for it. Missed.",
    ),
    "engine.pluggy": Goal(
        "the same, in multiples of doing it through pluggy",
        limit=1.0,
        bound="The judged row is pluggy with, for each handler, a task of its own that can be left behind when it is late, and a report: 0.9x in instructions; in time the two are close enough for a busy machine to swap them. The row below it, pluggy with asyncio.timeout around each, promises less (a handler that swallows its cancellation holds the agent for ever, and all share a task and its context) and is cheaper than we are, 2.5 times in instructions (it was 3.2): against that reading of the goal it is missed.",
    ),
    # Commands.
    "commands.hundred": Goal(
        "100 parallel command gates, in multiples of spawning and reaping them",
        limit=1.2,
        bound="The kernel starts and ends the same hundred shells in both; on top come, for each, three pipes (without which there is no output to report; pipes alone are 1.0x to 1.1x), a session of its own, a pidfd, two signals to its group, and a tenth of a millisecond of Python. Once per run comes the watchdog, a 101st process that ends them all if we are killed. On a busy machine of two cores the ratio swings by a tenth or two.",
    ),
    "commands.end": Goal(
        "milliseconds from the last gate's own exit to the end",
        limit=100.0,
        bound="The exit wakes us through a pidfd; then the group is signalled, seen to be empty, the watchdog is sent away, and both are collected.",
    ),
    "commands.background": Goal(
        "the same where the gate leaves a background child behind",
        limit=100.0,
        bound="50 ms in which output on its way may still come, up to 30 ms for the leftover to clean up after SIGTERM (most go at once), then SIGKILL.",
    ),
    "commands.memory": Goal(
        "megabytes at most while a gate prints a gigabyte",
        limit=64.0,
        bound="The interpreter and our modules (some 20 MB); of each stream 64 KB of the beginning and at most 384 KB of the end are kept while it is read.",
    ),
    "commands.survivors": Goal(
        "processes that survive a gate, setsid and a cleared environment included",
        limit=0.0,
        bound="0 on Linux: groups are signalled before their leader is collected, and a hook becomes the parent of whatever leaves them (PR_SET_CHILD_SUBREAPER) before it starts the first gate, which takes half a millisecond. Elsewhere, what makes a session of its own gets away; an embedded engine promises the group only.",
    ),
    # The ledger.
    "ledger.json": Goal(
        "times cheaper than a JSON registry of 100,000 decisions, written anew",
        limit=1_000,
        bound="A stop is two transactions of eight pages each and some 0.15 ms of Python and SQLite apiece, whatever the number of decisions; a JSON file is written as a whole for each change. Without indentation, which Python writes in C, the factor is about half.",
    ),
    "ledger.p99": Goal(
        "milliseconds for 99 of 100 writes, at 1,000 writes/s from 8 processes",
        limit=5.0,
        bound="SQLite has one writer at a time; a writer that finds it taken tries again after half a millisecond on average (there is no waiting in line with a time limit without a thread), and one write in a hundred or so brings the log into the file, which waits twice for the disk. On a machine that is busy with other things a writer that loses its core keeps all others waiting, and the figure is that of the scheduler: run it alone.",
    ),
    "ledger.max": Goal(
        "milliseconds of the slowest write, 8 processes writing all they can",
        limit=300.0,
        bound="The same; who comes next is left to chance, with short pauses that do not grow, so no writer is overtaken for long. A process of its own for each stop also waits for its turn on the cores.",
    ),
    "ledger.million": Goal(
        "begin + record at 1,000,000 stops, in multiples of 1,000 stops",
        limit=1.5,
        bound="What a stop reads and writes is found by an index: three or four pages deep at a million stops, two or three at a thousand.",
    ),
    "log.list": Goal(
        "milliseconds of `notyet log` on 1,000,000 stops",
        limit=1_000,
        bound="The start of the interpreter and what the command line imports; the newest rows are found by an index.",
    ),
    "log.stats": Goal(
        "milliseconds of `notyet log --stats` on 1,000,000 stops",
        limit=1_000,
        bound="The newest 20,000 stops are looked at (that older ones were left out is said), with all their reports.",
    ),
    "log.show": Goal(
        "milliseconds of `notyet log ID` on 1,000,000 stops",
        limit=1_000,
        bound="One row by its number, the rows beside it, and the start of the interpreter.",
    ),
    # The page.
    "screens.million": Goal(
        "a screen at 1,000,000 stops, in multiples of 1,000 stops",
        limit=3.0,
        bound="A screen reads the newest rows that match, found by an index, and no more than fit on it; figures are of a span of time, which has more stops in the larger ledger, or of the newest stops.",
    ),
    "screens.memory": Goal(
        "megabytes of a page of 1,000,000 stops beyond one of 1,000",
        limit=10.0,
        bound="A page keeps nothing of the ledger but SQLite's cache of 2 MB for each connection.",
    ),
    "screens.flat": Goal(
        "megabytes more after 300 further requests",
        limit=10.0,
        bound="Each answer is made, sent and forgotten; the allocator keeps some of it.",
    ),
    "screens.idle": Goal(
        "percent of a core while nothing happens and a tab is open",
        limit=1.0,
        bound="A few times a second one connection is asked for `PRAGMA data_version`, which reads a few bytes of shared memory.",
    ),
    # What gates beyond commands need.
    "snapshot.status": Goal(
        "a snapshot of 10,000 tracked files, in multiples of one git status",
        limit=2.0,
        bound="Git looks at every file to find what changed since its index was written, as for a status; then a tree is written, and noted.",
    ),
    # ACP.
    "acp.copy": Goal(
        "a message through `notyet acp`, in multiples of a program that copies two pipes line by line",
        limit=1.43,
        bound="Lines are taken in bundles, as many as a pipe holds; of an update only the bytes are searched, and its last ones are kept for the end of the turn.",
    ),
    "acp.memory": Goal(
        "megabytes more after a million messages than after ten thousand",
        limit=5.0,
        bound="At most a megabyte of a turn's last lines is kept.",
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
        bound="A stop compares the file with the text that was trusted, parses its record as JSON (some 20 us a gate) and makes only the gates that can be for its agent (some 15 us each). Compiling (validate, trust, a change of your own file) is linear, some 0.1 ms a gate: tomllib, the positions of every key, the schema and the records share it about equally.",
    ),
    "growth.ledger": Goal(
        "ledger: 1,000 ... 1,000,000 stops",
        shape="flat",
        bound="What a stop reads is found by an index, and the write-ahead log that it has to read is as short after a million stops as after ten.",
    ),
    "growth.transcript": Goal(
        "transcript: 1 MB ... 2 GB",
        shape="flat",
        bound="The file is read from its end in pieces of 64 KiB until there is an answer (about 1 ms for each megabyte that follows it), at most 64 MiB, and no line longer than 8 MiB is parsed: its size is nowhere in it.",
    ),
    "growth.tasks": Goal(
        "supervised tasks: 1,000 ... 100,000",
        shape="flat",
        bound="What a task reads and writes is found by an index; a cycle is bounded by two fsyncs, seven hops to the ledger's thread and its statements. Tidying up counted all tasks (linear); it now looks from any moment on and at a bounded number.",
    ),
    "stores.transactions": Goal(
        "transactions of a supervised task with three prompts",
        limit=12.0,
        bound="One enters the task, three end a turn and enter its stop, three count a decision with what follows from it, two begin the run of a prompt that arrived, one records that the result was delivered. Each is a moment at which the process may die and something else is true of the agent.",
    ),
    "growth.files": Goal(
        "repository: 100 ... 100,000 files",
        shape="linear",
        bound="Git status looks at every file (about 2 us each); beside it `git ls-files` lists the index, on another core.",
    ),
}
