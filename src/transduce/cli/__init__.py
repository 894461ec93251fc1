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
        sys.exit("transduce: the command line needs the extra 'app'. Run: pip install 'transduce[app]'")
    except KeyboardInterrupt:
        sys.exit(f"transduce: {INTERRUPTED}")
    main()
