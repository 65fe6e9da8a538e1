"""What was found in a project, in short."""

from notyet.project import look_at


def shown(root):
    """Return what was found: name, command, folder, and the place that shows it."""
    return {
        one.name: f"{one.run} | {one.dir} | {one.file}:{one.line}"
        for one in look_at(root).proposals
    }
