"""How a setting is given: flag, variables, bounds and help text, in one place.

A `Setting` stands beside the type and the default of the field that it is about:

    turns: Annotated[int, Setting("dialogue", "N", "turns to play at most", low=1, high=500)] = 40

Parser and help, reading and checking, what makes a run the run that it is, and the tables of the
documents come from these lines.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec import Struct

# Where settings of every run are listed; a benchmark may have one more, of its own name.
GROUPS = ("sweep", "dialogue", "settings of the model under test", "judging", "service", "output")


class Switch(Struct, frozen=True):
    """A flag without a field of its own, which steers another's: its name, word and help.

    `{default}` in `text` stands for `default_words`. `metavar` is `None` if it takes no word. It is
    listed after the flag that it steers if `comes_after`, before it otherwise.
    """

    name: str
    metavar: str | None
    text: str
    meaning: str = ""
    default_words: str = "off"
    comes_after: bool = False
    choices: tuple[str, ...] = ()


class Setting(Struct, frozen=True):
    """How a field is given from outside.

    Attributes:
        group: where help and documents list it: one of `GROUPS`, or its benchmark's name.
        metavar: what stands for its word; `None` for a switch, which sets what is not the default.
        text: what help says. `{low}`, `{high}`, `{choices}` and `{default}` stand for the values,
            `{benchmarks}` for the names of all. Without any text it has no flag.
        meaning: what the documents say, where that is more than `text`. They tell the bounds, too.
        default_words: how the default is called, where its value does not say it.
        flag: its flag, without dashes, where that is not the field's name.
        short: a letter that stands for the flag.
        offers: words that it may be, where its type does not say them: for help and completion.
        after: the flag that it is listed after; else it follows the one declared before it.
        variables: variables of the environment that give it, the first that is set counting.
        low, high: bounds, both included; for a setting of many words, of how many there may be.
        form: how a word is made up, such as `KEY=VALUE`, told where `parse` can make nothing of it.
        parse: a value from a word, or `None`.
        steered_by: a flag that steers it too.
        identity: part of what makes a run the run that it is, `always`, or if it is `chosen`, which
            is if it is not the default: so a new setting changes no older run.
        before: what runs had that were stored before there was such a setting, where that is not
            its default.
        axis: the flag by which a sweep gives it several values; without any, all cells of a sweep
            have the same one.
        expand: the values that one word of that flag stands for; else the word is the value. Raises
            `UsageError` for a word that stands for none.
        is_sample: it says what is played, by whatever model: seeds of a sweep follow from it.
        is_afresh: not stored; a resuming command gives it anew. is_file: a path, kept in its
        absolute form. is_input: stands in the document's `inputs`.
    """

    group: str
    metavar: str | None
    text: str
    meaning: str = ""
    default_words: str = ""
    flag: str = ""
    short: str = ""
    offers: Callable[[], Sequence[str]] = tuple
    after: str = ""
    variables: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    form: str = ""
    parse: Callable[[str], Any] | None = None
    steered_by: Switch | None = None
    identity: Literal["", "always", "chosen"] = ""
    before: Any = None
    axis: str = ""
    expand: Callable[[str], Sequence[str]] | None = None
    is_sample: bool = False
    is_afresh: bool = False
    is_file: bool = False
    is_input: bool = False
