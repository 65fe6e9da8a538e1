import pytest

from crews import Crew, Office, new_database


@pytest.fixture
def office(tmp_path):
    """A ledger with a queue, and tasks in it whose moves are made by hand."""
    return Office(tmp_path)


@pytest.fixture
def url(cluster):
    """Return the address of a database of its own, with the tables of a fleet."""
    return new_database(cluster)


@pytest.fixture
def crew(url):
    """A fleet with the queue `agents`; its worker, if one is started, is in this process."""
    made = Crew(url)
    yield made
    made.close()


@pytest.fixture
def crew_of(url):
    """Return what makes a crew with these queues."""
    made = []

    def make(*queues):
        made.append(Crew(url, *queues))
        return made[-1]

    yield make
    for one in made:
        one.close()
