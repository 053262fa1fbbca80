"""A turn: one item, and the answer that is read from the model's reply."""

from __future__ import annotations

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
    other_program,
    value_of,
)
from socratic_bench.benchmarks.execution.literals import (
    LiteralError,
    Value,
    compare,
    parse_answer,
    parse_python,
)
from socratic_bench.benchmarks.execution.outcomes import OF_ITEM, ItemOutcome, Outcome
from socratic_bench.turns import Turn

# The end of a longer reply is searched.
MAX_CHARACTERS = 200_000
MAX_OBJECTS = 2000
MAX_TAGS = 20
_TAG = re.compile(r"[\[<](/?)ANSWER[\]>]", re.IGNORECASE)
_FENCE = re.compile(r"```[^\n`]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_ESCAPE = re.compile(r"\\(?![\"\\/bfnrtu])")  # of Python, and none of JSON
# Marks around code and bold words, and blanks.
_MARKUP = " \t\r\n`*"
_LETTER = re.compile(r"\s*[\"'`(\[]*(?:program)?[\s_:-]*([AB])[\"'`)\].]*\s*", re.IGNORECASE)


class Answer(Struct, frozen=True):
    """A readable answer: value, its text, and the program that was chosen, if one was to be."""

    value: Value
    text: str
    chosen: Letter | None = None


class ExecutionTurn(Turn, frozen=True, kw_only=True):
    """A turn of this benchmark; `answer` is `None` if none could be read from the reply."""

    item: Item
    result: Outcome = "unparsed"
    answer: Answer | None = None

    @classmethod
    def of(cls, turn: Turn) -> ExecutionTurn:
        assert isinstance(turn, cls)  # noqa: S101 -- there are no other episodes
        return turn

    @property
    def target_program(self) -> Program:
        return self.item_outcome.target_program

    @property
    def item_outcome(self) -> ItemOutcome:
        """The outcome as all figures are made of it."""
        item = self.item
        return ItemOutcome(
            kind=item.kind,
            problem=item.problem.id,
            n_cases=len(item.problem.inputs),
            **{name: getattr(item, name) for name in OF_ITEM},
            outcome=self.result,
            chosen=self.answer.chosen if self.answer else None,
        )


def read_turn(turn: ExecutionTurn) -> ExecutionTurn:
    """The turn with its answer and result; a reply that was refused or cut off has no answer."""
    if turn.answered != "answered":
        return _with_result(turn, turn.answered, is_parsed=None)
    item, text = turn.item, turn.reply.message.text
    function_name = item.problem.function_name
    answer = read_choice(text) if item.is_choice else read_prediction(text, function_name)
    if answer is None:
        return _with_result(turn, "unparsed", is_parsed=False)
    turn = replace(turn, answer=answer)
    result, is_mismatch = _compare(turn, answer)
    return _with_result(turn, result, is_parsed=True, is_mismatch=is_mismatch)


def _with_result(
    turn: ExecutionTurn, result: Outcome, *, is_parsed: bool | None, is_mismatch: bool | None = None
) -> ExecutionTurn:
    return replace(
        turn,
        result=result,
        is_parsed=is_parsed,
        measures={"outcome": result, "shape_mismatch": is_mismatch},
        summary=result.replace("_", " "),
    )


def _compare(turn: ExecutionTurn, answer: Answer) -> tuple[Outcome, bool]:
    """The result of an answer, and whether it differs from the right one by its brackets alone."""
    item, program = turn.item, turn.target_program
    expected, other_output = item.output(program), item.output(other_program(program))
    comparison = compare(answer.value, value_of(expected or ""))
    if comparison == "equal":
        return "correct", False
    is_other = other_output is not None and compare(answer.value, value_of(other_output)) == "equal"
    result: Outcome = "reversion" if is_other and item.can_revert else "other_wrong"
    return result, comparison == "shape_mismatch"


def read_prediction(reply: str, function_name: str) -> Answer | None:
    """The last whole answer between its tags; `None` if it cannot be read.

    If other words stand between the tags, it is the only assertion about the function there;
    without any tags, the last line that asserts something about the function.
    """
    end = reply[-MAX_CHARACTERS:]
    blocks = [*_tagged_blocks(end)]
    if not blocks:
        assertions = [*_assertions(end, function_name)]
        return _read_marked_up(assertions[-1]) if assertions else None
    return _first_readable(_read_marked_up, blocks) or _read_among_words(blocks[0], function_name)


def read_choice(reply: str) -> Answer | None:
    """The last JSON object that names a program, with its assertion, if both can be read."""
    end = reply[-MAX_CHARACTERS:]
    choice = next(_choice_objects(end), None) or next(
        _choice_objects(_ESCAPE.sub(r"\\\\", end)), None
    )
    if choice is None:
        return None
    chosen_text, assertion = choice.get(CHOSEN), choice.get(ASSERTION)
    letter = _LETTER.fullmatch(chosen_text) if isinstance(chosen_text, str) else None
    if letter is None or not isinstance(assertion, str):
        return None
    # Tags in a readable assertion belong to a text in it.
    answer = _read_literal(assertion) or _first_readable(
        _read_marked_up, [*_tagged_blocks(assertion)] or [assertion]
    )
    chosen: Letter = "A" if letter[1].upper() == "A" else "B"
    return Answer(answer.value, answer.text, chosen) if answer else None


def _tagged_blocks(reply: str) -> Iterator[str]:
    """The candidates for the last whole block, the shortest first.

    It ends at the last closing tag that has an opening one before it, and begins at one of these:
    an answer that is a text may hold tags, too.
    """
    tags = [*_TAG.finditer(reply)]
    for at in range(len(tags) - 1, -1, -1):
        opening_tags = [tag for tag in tags[:at] if not tag[1]] if tags[at][1] else []
        for tag in reversed(opening_tags[-MAX_TAGS:]):
            yield reply[tag.end() : tags[at].start()]
        if opening_tags:
            return


def _read_marked_up(text: str) -> Answer | None:
    """An answer as it stands or, if it cannot be read so, without its fence or other marks."""
    stripped = text.strip()
    return _first_readable(
        _read_literal, (stripped, *_FENCE.findall(text)[-1:], stripped.strip(_MARKUP))
    )


def _first_readable(read: Callable[[str], Answer | None], texts: Iterable[str]) -> Answer | None:
    return next(filter(None, map(read, texts)), None)


def _read_literal(text: str) -> Answer | None:
    with suppress(LiteralError):
        return Answer(parse_answer(text), text.strip())
    return None


def _read_among_words(block: str, function_name: str) -> Answer | None:
    """The assertion about the function in a block; `None` for several with different values."""
    # An assertion over several lines ends with the block.
    last = "assert " + block.rpartition("\nassert ")[2]
    assertions = [*_assertions(block, function_name)]
    assertions += [last] if _is_about(last.strip(_MARKUP), function_name) else []
    answers = [answer for answer in map(_read_marked_up, assertions) if answer]
    is_unique = all(compare(answer.value, answers[0].value) == "equal" for answer in answers)
    return answers[-1] if answers and is_unique else None


def _assertions(text: str, function_name: str) -> Iterator[str]:
    """The lines that assert something about the function."""
    for marked_up in text.splitlines():
        line = _TAG.sub("", marked_up).strip(_MARKUP)
        if line.startswith("assert") and _is_about(line, function_name):
            yield line


def _is_about(line: str, function_name: str) -> bool:
    """Whether a line asserts what the function returns."""
    try:
        program = parse_python(ast.Module, line)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    match program.body[0]:
        case ast.Assert(
            test=ast.Compare(left=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)))
        ):
            return name == function_name
        case _:
            return False


def _choice_objects(reply: str) -> Iterator[dict[str, object]]:
    """The JSON objects that name a program, the last one first."""
    decoder = json.JSONDecoder(strict=False)
    starts = [match.start() for match in re.finditer(r"\{", reply)]
    for start in reversed(starts[-MAX_OBJECTS:]):
        try:
            value, _ = decoder.raw_decode(reply, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and CHOSEN in value:
            yield value
