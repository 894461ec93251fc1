"""`python -m transduce` is the command line."""

from transduce.app import main

if __name__ == "__main__":
    main()
