"""`python -m quire`: the command line."""

from .cli.client import main

if __name__ == "__main__":
    main()
