"""Names of tests that are the same in every process."""

import re


def without_address(thing: object) -> str:
    """What a thing is, but for its place in memory."""
    return re.sub(r" at 0x[0-9A-Fa-f]+", "", str(thing))
