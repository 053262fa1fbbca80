"""`python -m cli` is the command."""

import sys

from cli.runner import main

if __name__ == "__main__":
    sys.exit(main())
