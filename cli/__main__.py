"""`python -m` with this package is the command."""

import sys

from .runner import main

if __name__ == "__main__":
    sys.exit(main())
