import pytest

from fleets import Office


@pytest.fixture
def office(tmp_path):
    """A ledger with a queue, and tasks in it whose moves are made by hand."""
    return Office(tmp_path)
