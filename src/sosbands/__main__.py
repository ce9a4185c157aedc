"""``python -m sosbands``: the command line."""

from sosbands.cli import main

if __name__ == "__main__":
    main()
