"""`python -m transduce` is the command line."""

from transduce.cli import entry_point

if __name__ == "__main__":
    entry_point()
