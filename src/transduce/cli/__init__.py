"""What a person runs: thin commands over the library, and the place that prints."""

import sys


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        from transduce.cli.main import main as run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit("transduce: the command line needs the extra app; run: pip install 'transduce[app]'")
    run()
