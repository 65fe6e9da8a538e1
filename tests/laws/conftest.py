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
    """Let deep laws take minutes, which is longer than a test may."""
    for item in items:
        if PROFILE == "deep" and os.path.dirname(item.path) == HERE:
            item.add_marker(pytest.mark.timeout(0))
