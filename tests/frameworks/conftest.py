"""Tests with real frameworks: `make test-frameworks` runs each in an environment of its own.

Marks say what a test proves; the results are in proven.json.
"""


def pytest_collection_modifyitems(items):
    """Note in the report of each test what it proves."""
    for item in items:
        for mark in item.iter_markers("holds"):
            item.user_properties.append(("holds", mark.args[0]))
        for mark in item.iter_markers("cannot_hold"):
            label, reason = mark.args
            item.user_properties.append(("cannot_hold", f"{label}: {reason}"))
