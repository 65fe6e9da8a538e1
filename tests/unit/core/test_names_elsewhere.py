"""Names of events and gates that are loaded where they are asked for."""

import pytest

from notyet.core import event, gate
from notyet.core.event_parts import BackgroundTask, Usage
from notyet.core.function import Function
from notyet.core.start_event import StartEvent

NAMES = [
    (event, "BackgroundTask", BackgroundTask),
    (event, "StartEvent", StartEvent),
    (event, "Usage", Usage),
    (gate, "Function", Function),
]


@pytest.mark.parametrize(("module", "name", "meant"), NAMES)
def test_a_class_is_found_where_it_used_to_be(module, name, meant, monkeypatch):
    monkeypatch.delitem(vars(module), name, raising=False)
    assert getattr(module, name) is meant
    assert vars(module)[name] is meant  # and the next time without asking


@pytest.mark.parametrize("module", [event, gate])
def test_a_name_that_is_nowhere_is_said(module):
    with pytest.raises(AttributeError, match=f"'{module.__name__}' has no attribute 'Nothing'"):
        _ = module.Nothing
