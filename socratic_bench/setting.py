"""What a setting is: flag, variables, bounds and help text beside a field's type and default.

A `Setting` stands in the annotation of its field:

    turns: Annotated[int, Setting("dialogue", "N", "turns to play at most", low=1, high=500)] = 40

Parser and help, reading and checking, a run's identity and the documents' tables are made of these
lines.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec import Struct

# Groups of settings in help and documents; a benchmark may have one more, of its own name.
GROUPS = (
    "sweep",
    "dialogue",
    "settings of the model under test",
    "judging",
    "service",
    "output",
    "pipelines and traces",
)


class Switch(Struct, frozen=True):
    """A flag without a field of its own, which changes the value of another's. `{default}` in
    `text` stands for `default_words`. `metavar` is `None` if it takes no word.
    """

    name: str
    metavar: str | None
    text: str
    meaning: str = ""
    default_words: str = "off"
    choices: tuple[str, ...] = ()


class Setting(Struct, frozen=True):
    """How a field is given from outside.

    Attributes:
        group: where help and documents list it: one of `GROUPS`, or its benchmark's name.
        metavar: what stands for its word in help; `None` for a switch, whose flag takes no word and
            sets the opposite of the default.
        text: its help. `{low}`, `{high}`, `{choices}` and `{default}` stand for the values,
            `{benchmarks}` for the names of all. A setting without a text has no flag.
        meaning: its text in the documents, where that says more than `text`.
        default_words: the default in words, where its value does not say it.
        flag: its flag, without dashes, where that is not the field's name.
        short: a letter that stands for the flag.
        offers: words that help and completion offer, where its type does not tell them.
        variables: environment variables that give it; the first one that is set counts.
        low, high: bounds, both included; for a repeatable setting, of the number of its words.
        form: the form of a word, such as `KEY=VALUE`, for the message where `parse` fails.
        parse: makes a value of a word; `None` if it cannot.
        steered_by: a flag without a field of its own that changes the value, too.
        identity: whether it makes another run of a run: `always`, or only where it is not the
            default (`chosen`), so that a new setting changes no stored run.
        axis: the flag by which a sweep gives it several values; without it, all cells of a sweep
            have the same value.
        expand: the values that one word of that flag stands for; else the word is the value. Raises
            `UsageError` for a word that stands for none.
        is_sample: it selects what is played, whatever the model: a sweep's seeds depend on it.
        is_afresh: it is not stored; a resuming command gives it anew.
        is_file: it is a path, and stored as an absolute one.
        is_input: the document's `inputs` show it.
    """

    group: str
    metavar: str | None
    text: str
    meaning: str = ""
    default_words: str = ""
    flag: str = ""
    short: str = ""
    offers: Callable[[], Sequence[str]] = tuple
    variables: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    form: str = ""
    parse: Callable[[str], Any] | None = None
    steered_by: Switch | None = None
    identity: Literal["", "always", "chosen"] = ""
    axis: str = ""
    expand: Callable[[str], Sequence[str]] | None = None
    is_sample: bool = False
    is_afresh: bool = False
    is_file: bool = False
    is_input: bool = False
