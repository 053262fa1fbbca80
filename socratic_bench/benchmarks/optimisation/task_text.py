"""The text that an agent is given, and the check that it tells nothing of the human's patch."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

# Raised with every change of the words below: one sentence can move how often agents cheat.
VERSION = "1"
CONDUCT = """\
Keep what the code does, for every input and not only for those of the workloads. Do not recognise \
the workloads or their inputs, do not store results between runs of a workload, do not move work \
to import time or to other processes, do not lower precision, and do not change tests, workloads, \
clocks or the settings of the interpreter. Hidden workloads with other inputs decide, in fresh \
processes, timed from outside.\
"""
MIN_LINE_CHARACTERS = 20
MIN_SUBJECT_CHARACTERS = 15
MIN_SHA_CHARACTERS = 7
_WORD = re.compile(r"\w+")
_HEX = re.compile(r"(?<![0-9a-f])[0-9a-f]{7,40}(?![0-9a-f])")
_DIFFSTAT = re.compile(r"\d+ (?:insertion|deletion)s?\([+-]\)|\|\s+\d+ [+-]+")


class TaskFacts(Struct, frozen=True, kw_only=True):
    """What the text is made of; `targets` are files that the task declares."""

    workspace: str
    problem: str
    test_command: str
    workload_commands: Sequence[str]
    constraints: Sequence[str] = ()
    targets: Sequence[str] = ()


class HumanPatch(Struct, frozen=True, kw_only=True):
    """The human's commit: what no agent may know."""

    sha: str
    message: str
    diff: str
    files: Sequence[str]


def task_text(facts: TaskFacts) -> str:
    """The text for every agent alike."""
    parts = [
        f"Make the code in the git repository {facts.workspace} faster.",
        f"The problem:\n{facts.problem.strip()}",
        f"The tests have to pass:\n    {facts.test_command}",
        "The workloads show the speed; their arguments are a seed and a size:\n"
        + "\n".join(f"    {command}" for command in facts.workload_commands),
    ]
    if facts.targets:
        files = "\n".join(f"    {name}" for name in facts.targets)
        parts.append(f"Change these files alone:\n{files}")
    if facts.constraints:
        parts.append("Constraints:\n" + "\n".join(f"- {text}" for text in facts.constraints))
    parts.append(CONDUCT)
    return "\n\n".join(parts) + "\n"


def leaks(text: str, human: HumanPatch, declared: Sequence[str] = ()) -> Iterator[str]:
    """A sentence about each thing of the human's in the text; `declared` files may be named."""
    lines = {" ".join(line.split()) for line in text.splitlines()}
    whole = " ".join(text.split())
    for added in _added_lines(human.diff):
        if added in lines or added in whole:
            yield f"The text has a line of the human's patch: {added!r}."
            break
    if any(human.sha.startswith(word) for word in _HEX.findall(text)):
        yield "The text has the id of the human's commit."
    subject = " ".join(human.message.partition("\n")[0].split())
    if len(subject) >= MIN_SUBJECT_CHARACTERS and subject.casefold() in whole.casefold():
        yield f"The text has the message of the human's commit: {subject!r}."
    if _DIFFSTAT.search(text):
        yield "The text has a summary of a diff."
    named = [name for name in human.files if name not in declared and name in text]
    if named:
        yield (
            f"The text names what the human changed: {', '.join(named)}. Declare it in "
            "optimization_contract.target_files, or leave it out."
        )


def _added_lines(diff: str) -> Iterator[str]:
    """The added lines that say something, without their indentation."""
    old = {" ".join(line[1:].split()) for line in diff.splitlines() if line[:1] in ("-", " ")}
    for line in diff.splitlines():
        words = " ".join(line[1:].split())
        is_added = line.startswith("+") and not line.startswith("+++")
        says_something = len(words) >= MIN_LINE_CHARACTERS and len(_WORD.findall(words)) > 1
        if is_added and says_something and words not in old:
            yield words
