"""`python -m ars`: the command line, for when the scripts folder is not on PATH."""

from ars.cli import main

if __name__ == "__main__":
    main()
