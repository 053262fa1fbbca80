"""Several scenarios by one word: `all`, `family:NAME`, or the name of one."""

from difflib import get_close_matches

from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids, load_builtin
from socratic_bench.benchmarks.socratic.scenarios.scenario import CUSTOM, FAMILIES
from socratic_bench.errors import Problem, UsageError

ALL = "all"
FAMILY = "family:"
_MOST_NAMED = 3
# Comparing takes quadratic time, and no name is longer.
_LONGEST_NAME = 100


def scenarios_of(word: str) -> tuple[str, ...]:
    """The ids that the word stands for; the one for any prompt only by its own name.

    Raises `UsageError` for a name or family that there is not.
    """
    subjects = tuple(name for name in builtin_ids() if name != CUSTOM)
    if word == ALL:
        return subjects
    if word.startswith(FAMILY):
        family = word.removeprefix(FAMILY)
        if family not in FAMILIES:
            raise _unknown("family", family, FAMILIES)
        return tuple(name for name in subjects if load_builtin(name).family == family)
    if word not in builtin_ids():
        raise _unknown("scenario", word, builtin_ids())
    return (word,)


def _unknown(what: str, name: str, known: tuple[str, ...]) -> UsageError:
    near = get_close_matches(name[:_LONGEST_NAME], known, n=_MOST_NAMED)
    meant = f"; did you mean {' or '.join(near)}?" if near else f". There is {', '.join(known)}."
    text = "{scenarios}: no {what} is called {name!r}{meant}"
    return UsageError([Problem.of(text, what=what, name=name, meant=meant)])
