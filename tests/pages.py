"""Pages that show a console: the commands in them, and what these are said to print."""

import re
import shlex

import stories

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RECORDED = re.compile(r"<!-- recorded.*?: end -->", re.DOTALL)
STARTERS = {"if", "then", "else", "exec", "!"}


def fenced(page, kind):
    """Return the blocks of a kind."""
    return [part.split("```")[0] for part in page.read_text().split(f"```{kind}\n")[1:]]


def shown(page):
    """Return the commands of a page, each with what it is said to print."""
    steps = []
    for line in "".join(fenced(page, "console")).splitlines():
        if line.startswith("$ "):
            steps.append(stories.Step(0, [line[2:]]))
        else:
            steps[-1].expected.append(line)
    return steps


def differing(page, folder, before, timeless):
    """Run a page's commands in its project; return those that print something else.

    `before` is run first; `timeless` makes lines equal that differ by their times only.
    """
    world = stories.World(folder)
    (config,) = fenced(page, "toml")
    (world.project / "notyet.toml").write_text(config)
    steps = [stories.Step(0, [before]), *shown(page)]
    assert len(steps) > 5
    return [
        (step.command, lines)
        for step, lines in zip(steps, stories.told(steps, world), strict=True)
        if timeless(lines) != timeless(step.expected)
    ]


def prompted(text):
    """Return the lines of a page that follow a prompt, without the sessions that were recorded."""
    blocks = [body for kind, body in FENCE.findall(RECORDED.sub("", text)) if kind == "console"]
    return [line[2:] for body in blocks for line in body.splitlines() if line.startswith("$ ")]


def commands(line):
    """Return the commands in a line for a shell, each as its words."""
    line = re.sub(r"(^|\s)#\s.*|\s\d(?=[<>])", "", line)  # a comment, the number of a stream
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    found, is_file = [[]], False
    for word in words:
        if set(word) <= set("();&|"):
            found.append([])
        elif not is_file and not set(word) <= set("<>"):
            found[-1].append(word)
        is_file = set(word) <= set("<>")
    return [words for words in found if words]


def ours(line):
    """Return the words after `notyet` of each of our commands in a line for a shell."""
    found = []
    for words in commands(line):
        at = 0
        while at < len(words) and (words[at] in STARTERS or re.match(r"\w+=", words[at])):
            at += 1
        if words[at:][:1] == ["ssh"] and "notyet" in words:
            at = words.index("notyet")
        if words[at:][:1] == ["notyet"]:
            found.append(words[at + 1 :])
    return found
