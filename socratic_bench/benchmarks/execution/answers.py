"""What a model answered, read from its reply: a value or, of two programs, one and a value."""

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks.execution.items import (
    ASSERTION,
    CHOSEN,
    Item,
    Letter,
    Program,
    other,
    value_of,
)
from socratic_bench.benchmarks.execution.literals import (
    LiteralError,
    Value,
    compare,
    parse_answer,
    parsed_as,
)
from socratic_bench.benchmarks.execution.outcomes import ItemOutcome, Outcome
from socratic_bench.turns import Turn

# Where the last words of a longer reply are looked through.
MAX_CHARACTERS = 200_000
MOST_OBJECTS = 2000
MOST_TAGS = 20
_TAG = re.compile(r"[\[<](/?)ANSWER[\]>]", re.IGNORECASE)
_FENCE = re.compile(r"```[^\n`]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_ESCAPE = re.compile(r"\\(?![\"\\/bfnrtu])")  # of Python, and none of JSON
# What stands around code and bold words, besides blanks.
_MARKUP = " \t\r\n`*"
_LETTER = re.compile(r"\s*[\"'`(\[]*(?:program)?[\s_:-]*([AB])[\"'`)\].]*\s*", re.IGNORECASE)


class Answer(Struct, frozen=True):
    """`text` is the words that were read as `value`; `chosen` is `None` where nothing was to be
    chosen.
    """

    value: Value
    text: str
    chosen: Letter | None = None


def read_prediction(reply: str, function_name: str) -> Answer | None:
    """The last whole answer between its tags, or what alone is asserted of the function there among
    other words; without any tags, the last line that asserts something of the function. `None` if
    it cannot be read.
    """
    blocks = [*_blocks(reply[-MAX_CHARACTERS:])]
    if not blocks:
        of_it = [*_assertions(reply[-MAX_CHARACTERS:], function_name)]
        return _answer(of_it[-1]) if of_it else None
    return _first(_answer, blocks) or _among_words(blocks[0], function_name)


def read_choice(reply: str) -> Answer | None:
    """The last JSON object that names a program, with its assertion; `None` if there is none that
    can be read.
    """
    last = reply[-MAX_CHARACTERS:]
    found = next(_objects(last), None) or next(_objects(_ESCAPE.sub(r"\\\\", last)), None)
    if found is None:
        return None
    named, said = found.get(CHOSEN), found.get(ASSERTION)
    letter = _LETTER.fullmatch(named) if isinstance(named, str) else None
    if letter is None or not isinstance(said, str):
        return None
    # Tags that a readable one holds are those of a text in it.
    answer = _bare(said) or _first(_answer, [*_blocks(said)] or [said])
    chosen: Letter = "A" if letter[1].upper() == "A" else "B"
    return Answer(answer.value, answer.text, chosen) if answer else None


def _blocks(reply: str) -> Iterator[str]:
    """What may be the last whole block: it ends at the last closing tag that has an opening one
    before it, and begins at the nearest of these with which it can be read. An answer that is a
    text may hold tags, too.
    """
    tags = [*_TAG.finditer(reply)]
    for at in range(len(tags) - 1, -1, -1):
        begins = [one for one in tags[:at] if not one[1]] if tags[at][1] else []
        for one in reversed(begins[-MOST_TAGS:]):
            yield reply[one.end() : tags[at].start()]
        if begins:
            return


def _answer(text: str) -> Answer | None:
    """As it stands or, if it cannot be read so, out of its fence or other marks."""
    whole = text.strip()
    return _first(_bare, (whole, *_FENCE.findall(text)[-1:], whole.strip(_MARKUP)))


def _first(read: Callable[[str], Answer | None], texts: Iterable[str]) -> Answer | None:
    """Of the first text that can be read."""
    return next(filter(None, map(read, texts)), None)


def _bare(text: str) -> Answer | None:
    with suppress(LiteralError):
        return Answer(parse_answer(text), text.strip())
    return None


def _among_words(block: str, function_name: str) -> Answer | None:
    """The assertion of the function in a block that holds other words; `None` if there are several
    of different values.
    """
    # One of several lines ends with the block.
    rest = "assert " + block.rpartition("\nassert ")[2]
    said = [*_assertions(block, function_name)]
    said += [rest] if _is_of(rest.strip(_MARKUP), function_name) else []
    found = [one for one in map(_answer, said) if one]
    is_one = all(compare(one.value, found[0].value) == "equal" for one in found)
    return found[-1] if found and is_one else None


def _assertions(text: str, function_name: str) -> Iterator[str]:
    """The lines that assert something of the function."""
    lines = (_TAG.sub("", line).strip(_MARKUP) for line in text.splitlines())
    return (one for one in lines if one.startswith("assert") and _is_of(one, function_name))


def _is_of(line: str, function_name: str) -> bool:
    """Whether a line asserts what the function returns."""
    try:
        program = parsed_as(ast.Module, line)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    match program.body[0]:
        case ast.Assert(
            test=ast.Compare(left=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)))
        ):
            return name == function_name
        case _:
            return False


def _objects(reply: str) -> Iterator[dict[str, object]]:
    """The JSON objects that name a program, the last one first."""
    decoder = json.JSONDecoder(strict=False)
    starts = [found.start() for found in re.finditer(r"\{", reply)]
    for start in reversed(starts[-MOST_OBJECTS:]):
        try:
            found, _ = decoder.raw_decode(reply, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and CHOSEN in found:
            yield found


# A turn of this benchmark: one item, and what was read of its reply.


class ExecutionTurn(Turn, frozen=True, kw_only=True):
    """`answer` is what was read of the reply, `None` if nothing was."""

    item: Item
    result: Outcome = "unparsed"
    answer: Answer | None = None

    @classmethod
    def of(cls, turn: Turn) -> "ExecutionTurn":
        """The turn as an episode of this benchmark has published it."""
        assert isinstance(turn, cls)  # noqa: S101 -- there are no other episodes
        return turn

    @property
    def about(self) -> Program:
        """The program whose output was asked for: the one that is shown, or chosen."""
        return self.reading.about

    @property
    def reading(self) -> ItemOutcome:
        item = self.item
        return ItemOutcome(
            kind=item.kind,
            problem=item.problem.id,
            n_cases=len(item.problem.inputs),
            case=item.case,
            round=item.round,
            program=item.program,
            level=item.level,
            can_revert=item.can_revert,
            outcome=self.result,
            chosen=self.answer.chosen if self.answer else None,
        )


def read(turn: ExecutionTurn) -> ExecutionTurn:
    """The turn with its answer, and what that is worth. A reply that was refused or cut off has no
    answer, whatever stands in it.
    """
    item, said = turn.item, turn.answered
    answer = None
    if said == "answered":
        reply = turn.reply.message.text
        answer = (
            read_choice(reply)
            if item.is_choice
            else read_prediction(reply, item.problem.function_name)
        )
    found = replace(turn, answer=answer)
    result, is_mismatch = ("unparsed", None) if said == "answered" else (said, None)
    if answer:
        result, is_mismatch = _judged(found, answer)
    return replace(
        found,
        result=result,
        is_parsed=answer is not None if said == "answered" else None,
        measures={"outcome": result, "shape_mismatch": is_mismatch},
        summary=result.replace("_", " "),
    )


def _judged(turn: ExecutionTurn, answer: Answer) -> tuple[Outcome, bool]:
    """What an answer is worth, and whether it differs from the right one by its brackets alone."""
    item, about = turn.item, turn.about
    expected, recalled = item.output(about), item.output(other(about))
    likeness = compare(answer.value, value_of(expected or ""))
    if likeness == "equal":
        return "correct", False
    is_other = recalled is not None and compare(answer.value, value_of(recalled)) == "equal"
    result: Outcome = "reversion" if is_other and item.can_revert else "other_wrong"
    return result, likeness == "shape_mismatch"
