"""Flags of the command alone: they change what is shown, not what is run."""

from typing import Annotated

from msgspec import Struct

from socratic_bench.setting import Setting


class Options(Struct, frozen=True, kw_only=True):
    """The command's own flags."""

    dry_run: Annotated[
        bool,
        Setting(
            "service",
            None,
            "print what the run would take, and call no model",
            "print [what the run would take](cost.md#a-dry-run), and call no model",
            after="prices",
        ),
    ] = False
    resume_from: Annotated[
        str | None,
        Setting(
            "output",
            "FILE",
            "go on with a partial document; - reads standard input",
            "[go on](resume.md) with the document of a run that was cut short; `-` reads standard "
            "input",
            after="resume",
        ),
    ] = None
    pretty: Annotated[bool, Setting("output", None, "indent the document")] = False
    brief: Annotated[bool, Setting("output", None, "print the short form of the document")] = False
    quiet: Annotated[bool, Setting("output", None, "no progress on stderr", short="q")] = False
    debug: Annotated[bool, Setting("output", None, "tracebacks on stderr")] = False
