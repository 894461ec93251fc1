"""Settings of all tests: no clock in hypothesis, no encoder of the machine, and a Ctrl-C that works."""

import os
import signal
import tempfile

from hypothesis import HealthCheck, settings

os.environ["HF_HUB_CACHE"] = os.path.join(tempfile.gettempdir(), "no-models-for-tests")
os.environ.pop("TRANSDUCE_ENCODER", None)
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as shells start what runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
