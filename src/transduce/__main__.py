"""`python -m transduce` is the command line."""

from transduce.cli import main

if __name__ == "__main__":
    main()
