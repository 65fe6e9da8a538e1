"""What a worker needs to begin a task."""

import pytest

from notyet.core.task import Order


def test_an_order_takes_values_of_the_right_types_only():
    assert Order(queue="agents", retries=2).retries == 2
    with pytest.raises(TypeError, match="retries"):
        Order(queue="agents", retries="2")
