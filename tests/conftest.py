"""Settings of all tests: hypothesis does not judge by the clock, which a busy machine would not meet."""

from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
