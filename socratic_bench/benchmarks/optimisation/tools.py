"""The tools of the built-in agent: it reads and changes files of its work tree, and runs commands.

Commands run isolated. Files are listed, read and searched by such commands, so that links and pipes
that an agent makes lead nowhere; they are written by the harness, inside the work tree alone.
"""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from socratic_bench.benchmarks.optimisation.isolation import CommandResult
from socratic_bench.types import Json, Tool, ToolResult, ToolUse, clean

MAX_OUTPUT_CHARACTERS = 20_000
MAX_FILE_BYTES = 4_000_000
FILE_TIMEOUT_S = 30.0
COMMAND_TIMEOUT_S = 300.0
FINISH = "finish"


# Runs a command in the agent's work tree, isolated, for so many seconds at most, and ends all that
# it has started. Raises what ends the run.
Shell = Callable[[str, float], CommandResult]


def _tool(
    name: str, description: str, required: Mapping[str, str], **optional: tuple[str, str]
) -> Tool:
    """A tool whose required arguments are texts; optional ones are (type, description)."""
    properties: dict[str, Json] = {
        argument: {"type": "string", "description": text} for argument, text in required.items()
    }
    for argument, (kind, text) in optional.items():
        properties[argument] = {"type": kind, "description": text}
    schema: dict[str, Json] = {
        "type": "object",
        "properties": properties,
        "required": [*required],
    }
    return Tool(name=name, description=description, input_schema=schema)


TOOLS = (
    _tool("list_files", "List the files below a folder.", {}, path=("string", "folder")),
    _tool(
        "read_file",
        "Read lines of a file.",
        {"path": "file"},
        first_line=("integer", "first line to read, 1 by default"),
        n_lines=("integer", "how many lines, 400 by default"),
    ),
    _tool(
        "search",
        "Search files for lines that match an extended regular expression.",
        {"pattern": "the expression"},
        path=("string", "file or folder"),
    ),
    _tool(
        "replace",
        "Replace a text that occurs exactly once in a file. With an empty old text, create the "
        "file, which must not exist.",
        {"path": "file", "old": "the text, with its line breaks", "new": "what replaces it"},
    ),
    _tool(
        "run_command",
        "Run a command of the shell in the repository, without network.",
        {"command": "the command"},
        timeout_s=("number", f"seconds after which it is ended, at most {COMMAND_TIMEOUT_S:.0f}"),
    ),
    Tool(
        name=FINISH,
        description="End the work. Say how many times faster the workloads run now, and why.",
        input_schema={
            "type": "object",
            "properties": {
                "expected_speedup": {
                    "type": "number",
                    "description": "time before divided by time after; 1 if nothing is faster",
                },
                "cause": {"type": "string", "description": "what made it slow, what you changed"},
            },
            "required": ["expected_speedup", "cause"],
        },
    ),
)


class ToolError(Exception):
    """What the model is told of a call that cannot be made."""


class Toolbox:
    """Performs the calls of tools in one work tree. `left_s` gives the seconds that are left."""

    def __init__(self, tree: Path, shell: Shell, left_s: Callable[[], float]) -> None:
        self._tree = tree.resolve()
        self._shell = shell
        self._left_s = left_s

    def perform(self, use: ToolUse) -> ToolResult:
        """The result of a call, or what is wrong with it. Raises what ends the run."""
        perform = {
            "list_files": self._list_files,
            "read_file": self._read_file,
            "search": self._search,
            "replace": self._replace,
            "run_command": self._run_command,
        }.get(use.name)
        if perform is None:
            return ToolResult(use.id, f"There is no tool {clean(use.name)!r}.", is_error=True)
        arguments = use.arguments if isinstance(use.arguments, dict) else {}
        try:
            text = perform(arguments)
        except ToolError as error:
            return ToolResult(use.id, clean(str(error)).strip() or "It failed.", is_error=True)
        text = clean(_shortened(text))
        return ToolResult(use.id, text if text.strip() else "(no output)")

    def _list_files(self, arguments: dict[str, Any]) -> str:
        place = self._place(arguments, default=".")
        command = f"find {place} -name .git -prune -o -type f -print | sort | head -n 2000"
        return self._output(command)

    def _read_file(self, arguments: dict[str, Any]) -> str:
        first = max(1, _number(arguments, "first_line", 1))
        last = first + max(1, _number(arguments, "n_lines", 400)) - 1
        command = f"sed -n '{first},{last}p' < {self._place(arguments)}"
        return self._output(command)

    def _search(self, arguments: dict[str, Any]) -> str:
        pattern = shlex.quote(_text(arguments, "pattern"))
        place = self._place(arguments, default=".")
        files = f"find {place} -name .git -prune -o -type f -print0"
        command = f"{files} | xargs -0 -r grep -nIEH -e {pattern} -- | head -n 200"
        return self._output(command) or "No line matches."

    def _replace(self, arguments: dict[str, Any]) -> str:
        name = _text(arguments, "path")
        old, new = (_text(arguments, key, may_be_empty=True) for key in ("old", "new"))
        path = (self._tree / name).resolve()
        if not path.is_relative_to(self._tree) or ".git" in path.relative_to(self._tree).parts:
            raise ToolError(f"{name} is not in the repository's work tree.")
        if not old:
            if path.exists():
                raise ToolError(f"{name} exists: give the text to replace.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(new, encoding="utf-8", newline="")
            return f"{name} was created."
        if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
            raise ToolError(f"{name} is no file, or too large.")
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            raise ToolError(f"{name} is no text in UTF-8.") from None
        if (n_places := text.count(old)) != 1:
            raise ToolError(f"The old text occurs {n_places} times in {name}, not once.")
        path.write_text(text.replace(old, new), encoding="utf-8", newline="")
        return f"{name} was changed."

    def _run_command(self, arguments: dict[str, Any]) -> str:
        wanted_s = arguments.get("timeout_s", COMMAND_TIMEOUT_S)
        if not isinstance(wanted_s, int | float) or not 0 < wanted_s <= COMMAND_TIMEOUT_S:
            wanted_s = COMMAND_TIMEOUT_S
        result = self._run(_text(arguments, "command"), wanted_s)
        end = f"ended: {result.stopped}" if result.stopped else f"exit code {result.exit_code}"
        return f"{_shortened(result.stdout + result.stderr)}\n[{end}]"

    def _output(self, command: str) -> str:
        result = self._run(command, FILE_TIMEOUT_S)
        if result.stopped:
            raise ToolError("It took too long.")
        if result.stderr and not result.stdout:
            raise ToolError(_shortened(result.stderr))
        return result.stdout

    def _run(self, command: str, timeout_s: float) -> CommandResult:
        return self._shell(command, max(0.1, min(timeout_s, self._left_s())))

    def _place(self, arguments: dict[str, Any], default: str | None = None) -> str:
        """A path as a word of the shell, which cannot be taken for an option."""
        if default is not None and not arguments.get("path"):
            return default
        return shlex.quote(f"./{_text(arguments, 'path')}")


def _text(arguments: dict[str, Any], name: str, *, may_be_empty: bool = False) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or "\0" in value or not (value or may_be_empty):
        raise ToolError(f"The argument {name} has to be a text.")
    return clean(value)


def _number(arguments: dict[str, Any], name: str, default: int) -> int:
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ToolError(f"The argument {name} has to be a number.")
    return int(min(max(value, -(10**9)), 10**9))


def _shortened(text: str) -> str:
    """The beginning and the end of a long text."""
    if len(text) <= MAX_OUTPUT_CHARACTERS:
        return text
    half = MAX_OUTPUT_CHARACTERS // 2
    n_left_out = len(text) - 2 * half
    return f"{text[:half]}\n[{n_left_out:,} characters left out]\n{text[-half:]}"
