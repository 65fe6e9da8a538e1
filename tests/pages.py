"""Pages that show a console: the commands in them, and what these are said to print."""

import stories


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
