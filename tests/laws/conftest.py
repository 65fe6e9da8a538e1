import os

from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, max_examples=120)
settings.register_profile(
    "deep", deadline=None, max_examples=5000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("NOTYET_LAWS", "default"))
