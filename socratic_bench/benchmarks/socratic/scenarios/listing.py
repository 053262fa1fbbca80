"""The documents of `socratic-runner scenarios`: the list of scenarios, or the checker's report."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Struct
from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.scenarios.check import check
from socratic_bench.benchmarks.socratic.scenarios.loading import (
    builtin_ids,
    load_builtin,
    load_file,
)
from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    AGES,
    CUSTOM,
    FAMILIES,
    Scenario,
    own_sentences,
)
from socratic_bench.documents.document import Count, Document, Sha256
from socratic_bench.errors import UsageError, Words, shorten, to_text
from socratic_bench.types import doc


class Checked(Struct, frozen=True):
    """A scenario and its problems. `file` is `None` if it is built in, `scenario` if unusable."""

    file: str | None
    scenario: Scenario | None
    problems: tuple[Words, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(map(to_text, self.problems))


def check_files(files: Sequence[str]) -> tuple[Sequence[Checked], Sequence[str]]:
    """Check the built-in scenarios, and these files along with them.

    Returns the problems of each, and those of several scenarios together.
    """
    entries = [Checked(None, load_builtin(name)) for name in builtin_ids()]
    for file in files:
        try:
            entries.append(Checked(file, load_file(file)))
        except UsageError as error:
            entries.append(Checked(file, None, (*error.sentences,)))
    scenarios = [entry.scenario for entry in entries if entry.scenario]
    n_by_id = Counter(scenario.id for scenario in scenarios)
    files_of = [entry.file for entry in entries if entry.scenario]
    advice = [(name, f"{name}: {text}") for name, text in check(scenarios, files=files_of)]
    for at, entry in enumerate(entries):
        # Advice on a scenario that shares its id concerns several.
        if entry.scenario and n_by_id[entry.scenario.id] == 1:
            lines = tuple(line for name, line in advice if name == entry.scenario.id)
            entries[at] = replace(entry, problems=lines)
    return entries, [line for name, line in advice if n_by_id[name] != 1]


class DrawnOut(Struct, frozen=True, kw_only=True):
    """An insight that good questions lead to."""

    insight: Annotated[str, doc("what the student can come to see")]


class ScenarioRow(Struct, frozen=True, kw_only=True):
    """One scenario."""

    id: Annotated[str, doc("its name, for --scenario")]
    title: Annotated[str, doc("what it is about, for people")]
    family: Annotated[str, doc("how the student's belief is weak")]
    subject: Annotated[str, doc("the field that it is from")]
    age: Annotated[str, doc("the student's")]
    resistance: Annotated[str, doc("how hard the student is to move")]
    opening: Annotated[str, doc("the student's first words")]
    n_openings: Annotated[Count, doc("openings to choose from")]
    n_replies: Annotated[Count, doc("sentences of its own of a scripted student")]
    language: Annotated[str, doc("BCP 47 tag of the language that it is held in")]
    draws_out: Annotated[list[DrawnOut], doc("what good questions let the student see")]
    closes_after: Annotated[Count | None, doc("the tutor's turns after which the student leaves")]
    sha256: Annotated[Sha256, doc("fingerprint of the file")]

    @classmethod
    def of(cls, scenario: Scenario) -> "ScenarioRow":
        same = {*cls.__struct_fields__} & {*scenario.__struct_fields__} - {"draws_out"}
        return cls(
            **{name: getattr(scenario, name) for name in same},
            opening=scenario.openings[0],
            n_openings=len(scenario.openings),
            n_replies=len(own_sentences(scenario)),
            draws_out=[DrawnOut(insight=insight.insight) for insight in scenario.draws_out],
        )


class ScenarioList(Document, frozen=True, kw_only=True):
    """The list of scenarios."""

    kind: Literal["scenarios"] = "scenarios"
    scenarios: Annotated[list[ScenarioRow], doc("all scenarios, by family")]


class CheckedRow(Struct, frozen=True, kw_only=True):
    """The checker's report on one scenario."""

    id: Annotated[str | None, doc("its name; null if the file cannot be used")]
    file: Annotated[str | None, doc("path of the file; null if it is built in")]
    family: Annotated[str | None, doc("its family; null if the file cannot be used")]
    problems: Annotated[list[str], doc("each with field and reason")]

    @classmethod
    def of(cls, checked: Checked) -> "CheckedRow":
        scenario = checked.scenario
        return cls(
            id=scenario.id if scenario else None,
            file=checked.file,
            family=scenario.family if scenario else None,
            problems=list(shorten(checked.lines)),
        )


class ScenarioCheck(Document, frozen=True, kw_only=True):
    """The checker's report."""

    kind: Literal["scenario_check"] = "scenario_check"
    ok: Annotated[bool, doc("whether there are no problems")]
    n_problems: Annotated[Count, doc("problems in all")]
    scenarios: Annotated[list[CheckedRow], doc("the problems of each")]
    problems: Annotated[list[str], doc("problems of several scenarios together")]
    families: Annotated[dict[str, Count], doc("scenarios by family, custom left out")]
    ages: Annotated[dict[str, Count], doc("scenarios by the student's age")]
    subjects: Annotated[dict[str, Count], doc("scenarios by subject")]

    @classmethod
    def of(cls, checked: Sequence[Checked], together: Sequence[str]) -> "ScenarioCheck":
        """`together` are the problems of several scenarios."""
        usable = [entry.scenario for entry in checked if entry.scenario]
        n_problems = len(together) + sum(len(entry.problems) for entry in checked)
        subjects = [scenario for scenario in usable if scenario.id != CUSTOM]
        families = Counter(scenario.family for scenario in subjects)
        ages = Counter(scenario.age for scenario in subjects)
        return cls(
            ok=not n_problems,
            n_problems=n_problems,
            scenarios=[CheckedRow.of(entry) for entry in checked],
            problems=list(shorten(together)),
            families={family: families[family] for family in FAMILIES},
            ages={age: ages[age] for age in AGES},
            subjects=dict(sorted(Counter(scenario.subject for scenario in subjects).items())),
        )
