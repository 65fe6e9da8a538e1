import os

import pytest
from hypothesis import HealthCheck, settings

HERE = os.path.dirname(__file__)

settings.register_profile("default", deadline=None, max_examples=40)
settings.register_profile(
    "deep", deadline=None, max_examples=5000, suppress_health_check=[HealthCheck.too_slow]
)
PROFILE = os.environ.get("NOTYET_LAWS", "default")
settings.load_profile(PROFILE)


def pytest_collection_modifyitems(items):
    """Count nothing as covered that only chance has met."""
    for item in items:
        if os.path.dirname(item.path) == HERE:
            item.add_marker(pytest.mark.uncounted)
            if PROFILE == "deep":  # takes minutes, longer than a test may
                item.add_marker(pytest.mark.timeout(0))
