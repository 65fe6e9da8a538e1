"""What was found in a project, in short."""

from notyet.project import detect


def shown(root):
    """Return what was found: name, command, folder, and the place that shows it."""
    return {
        one.name: f"{one.run} | {one.dir} | {one.file}:{one.line}" for one in detect(root).proposals
    }
