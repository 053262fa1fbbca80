"""What `socratic-runner scenarios` prints: the list of scenarios, or what the checker found."""

from typing import Annotated, Literal

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.checking import Checked, Report
from socratic_bench.benchmarks.socratic.scenarios.scenario import Scenario, own_sentences
from socratic_bench.documents.document import Count, Document, Sha256
from socratic_bench.errors import shorten
from socratic_bench.types import doc


class DrawnOut(Struct, frozen=True, kw_only=True):
    """A thought that good questions bring to light."""

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
    draws_out: Annotated[list[DrawnOut], doc("what good questions bring to light")]
    closes_after: Annotated[Count | None, doc("the tutor's turns after which the student leaves")]
    sha256: Annotated[Sha256, doc("fingerprint of the file")]

    @classmethod
    def of(cls, scenario: Scenario) -> "ScenarioRow":
        return cls(
            id=scenario.id,
            title=scenario.title,
            family=scenario.family,
            subject=scenario.subject,
            age=scenario.age,
            resistance=scenario.resistance,
            opening=scenario.openings[0],
            n_openings=len(scenario.openings),
            n_replies=len(own_sentences(scenario)),
            language=scenario.language,
            draws_out=[DrawnOut(insight=insight.insight) for insight in scenario.draws_out],
            closes_after=scenario.closes_after,
            sha256=scenario.sha256,
        )


class ScenarioList(Document, frozen=True, kw_only=True):
    """The list of scenarios."""

    kind: Literal["scenarios"] = "scenarios"
    scenarios: Annotated[list[ScenarioRow], doc("all scenarios, by family")]


class CheckedRow(Struct, frozen=True, kw_only=True):
    """What the checker found in one scenario."""

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
    """What the checker found in scenarios."""

    kind: Literal["scenario_check"] = "scenario_check"
    ok: Annotated[bool, doc("whether there is nothing to mend")]
    n_problems: Annotated[Count, doc("problems in all")]
    scenarios: Annotated[list[CheckedRow], doc("what was found in each")]
    problems: Annotated[list[str], doc("what no single scenario is to blame for")]
    families: Annotated[dict[str, Count], doc("scenarios by family, custom left out")]
    ages: Annotated[dict[str, Count], doc("scenarios by the student's age")]
    subjects: Annotated[dict[str, Count], doc("scenarios by subject")]

    @classmethod
    def of(cls, report: Report) -> "ScenarioCheck":
        return cls(
            ok=not report.n_problems,
            n_problems=report.n_problems,
            scenarios=[CheckedRow.of(one) for one in report.checked],
            problems=list(shorten(report.problems)),
            families=report.families,
            ages=report.ages,
            subjects=report.subjects,
        )
