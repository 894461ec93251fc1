"""Settings of all tests: no clock in hypothesis, which a busy machine would not meet, and no encoder of the machine."""

import os
import tempfile

from hypothesis import HealthCheck, settings

os.environ["HF_HUB_CACHE"] = os.path.join(tempfile.gettempdir(), "no-models-for-tests")
os.environ.pop("TRANSDUCE_ENCODER", None)

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
