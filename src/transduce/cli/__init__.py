"""The command line: thin commands over the library."""

import sys

INTERRUPTED = "interrupted before anything was written."


def entry_point() -> None:
    """Run the command line, or say which extra is missing; Ctrl-C may come while modules are still loading."""
    try:
        from transduce.cli.main import main
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        from transduce.suggest import install_advice

        sys.exit(f"transduce: the command line needs the extra 'app'. {install_advice('app')}")
    except KeyboardInterrupt:
        sys.exit(f"transduce: {INTERRUPTED}")
    try:
        main()
    except KeyboardInterrupt:  # a second Ctrl-C, while the first is being dealt with
        sys.exit(1)
