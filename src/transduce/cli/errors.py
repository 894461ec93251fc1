"""What a user can mend: one sentence that says what was expected, what came and what to do."""


class InputError(Exception):
    """Input that cannot be used as it is; the command line prints the sentence and exits with 2."""
