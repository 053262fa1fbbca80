"""`python -m` with this package is the command."""

from .runner import main

if __name__ == "__main__":
    main()
