"""How these tests start the command."""

import subprocess
import sys
from typing import Any

from tests.command import (
    ROOT,
    environment,
)

COMMAND = (sys.executable, "-m", "cli")


def shell(line: str, *words: str, **how: Any) -> subprocess.CompletedProcess[bytes]:
    """The command, as `"$@"`, in a line of a shell."""
    return subprocess.run(
        # One that served on would never end.
        ["bash", "-c", line, "bash", "timeout", "--foreground", "120", *COMMAND, *words],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(), **how},
        cwd=ROOT,
        check=False,
    )


PLAY = ("--offline", "--model", "emulator.socratic-v1:0", "--turns", "1")
