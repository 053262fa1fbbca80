"""The documents of `socratic-runner dataset`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Struct

from socratic_bench.benchmarks.execution.dataset.mutate import Mutated
from socratic_bench.benchmarks.execution.dataset.reading import DataSet
from socratic_bench.benchmarks.execution.items import Mutation, Problem
from socratic_bench.benchmarks.execution.sandbox.client import Limits
from socratic_bench.documents.document import Amount, Count, Document, Sha256, Share
from socratic_bench.types import doc

Which = Literal["original", "mutated"]
Fault = Literal[
    "wrong_output",
    "stored_not_literal",
    "not_literal",
    "nondeterministic",
    "error",
    "timeout",
    "memory",
    "output",
    "crashed",
    "no_result",
    "processes",
]
Id = Annotated[str, doc("the problem's id")]
ProblemSha = Annotated[Sha256, doc("of its programs, calls and stored outputs")]


class DataSetEntry(Struct, frozen=True, kw_only=True):
    """The data set that was read."""

    place: Annotated[str, doc("as it was named")]
    split: Annotated[str | None, doc("of a folder or the Hub; null: of a file")]
    revision: Annotated[str | None, doc("commit on the Hub; null: not of the Hub")]
    sha256: Annotated[Sha256, doc("of its files' bytes")]
    n_rows: Annotated[Count, doc("rows")]
    without_mutation: Annotated[list[str], doc("ids of rows that have no mutation")]

    @classmethod
    def of(cls, data: DataSet) -> "DataSetEntry":
        unmutated = [problem.id for problem in data.problems if problem.mutated_code is None]
        names = ("place", "split", "revision", "sha256", "n_rows")
        return cls(
            **{name: getattr(data, name) for name in names},
            without_mutation=[*data.dropped, *unmutated],
        )


class LimitsEntry(Struct, frozen=True, kw_only=True):
    """The limits of one execution of a program."""

    timeout_s: Annotated[Amount, doc("seconds by the clock, for all of its calls")]
    memory_bytes: Annotated[Count, doc("address space of its process")]
    printed_bytes: Annotated[Count, doc("what it may print")]

    @classmethod
    def of(cls, limits: Limits) -> "LimitsEntry":
        return cls(**{name: getattr(limits, name) for name in cls.__struct_fields__})


class Isolation(Struct, frozen=True, kw_only=True):
    """How the programs were isolated from the machine."""

    user: Annotated[
        Literal["nobody", "own"],
        doc("whose rights programs had: nobody's where the command is root's"),
    ]
    refuses_calls: Annotated[
        bool | None,
        doc(
            "whether the kernel refused them processes, sockets and changes of files; "
            "null: no program ended by itself"
        ),
    ]
    hides_files: Annotated[
        bool | None,
        doc(
            "whether the kernel hid from them all files but Python's and the system's "
            "libraries, and other processes; null: no program ended by itself"
        ),
    ]
    network_open: Annotated[
        bool, doc("whether the machine or container has a network but its own loop")
    ]


class FindingEntry(Struct, frozen=True, kw_only=True):
    """What is wrong with a program, or with one of its calls."""

    program: Which
    fault: Fault
    case: Annotated[Count | None, doc("index of the call, from 0; null: all of them")]
    message: Annotated[str, doc("the fault in words")]
    stored: Annotated[str | None, doc("beginning of the output in the data set")]
    found: Annotated[list[str], doc("beginning of what it gave, by run")]


class VerifiedRow(Struct, frozen=True, kw_only=True):
    """One problem."""

    id: Id
    sha256: ProblemSha
    ok: Annotated[bool, doc("whether nothing is wrong with it")]
    findings: Annotated[list[FindingEntry], doc("all that is wrong with it")]


class DatasetVerification(Document, frozen=True, kw_only=True):
    """Whether the stored outputs of a data set are what its programs give."""

    kind: Literal["dataset_verification"] = "dataset_verification"
    ok: Annotated[bool, doc("whether nothing is wrong with any row")]
    dataset: DataSetEntry
    n_runs: Annotated[Count, doc("runs of each program, with as many hash seeds")]
    n_wrong: Annotated[Count, doc("rows with which something is wrong")]
    limits: LimitsEntry
    isolation: Isolation
    rows: Annotated[list[VerifiedRow], doc("all rows, in the order of the data set")]


class MutatedRow(Struct, frozen=True, kw_only=True):
    """One problem, and the mutation that was made for it."""

    id: Id
    sha256: Annotated[ProblemSha | None, doc("with the mutation; null: it has none")]
    made: Annotated[bool, doc("whether a mutation was made, or made anew")]
    mutation_type: Annotated[str | None, doc("kind of operator; null: none, unknown")]
    coverage_similarity: Annotated[
        Share | None, doc("Jaccard index of the lines that both programs execute")
    ]
    n_candidates: Annotated[Count, doc("mutations that were tried")]
    n_valid: Annotated[Count, doc("those that end with literals, of which one or more differ")]
    reason: Annotated[str | None, doc("why none was made; null: one was")]


class DatasetMutation(Document, frozen=True, kw_only=True):
    """Mutations that were made for the programs of a data set."""

    kind: Literal["dataset_mutation"] = "dataset_mutation"
    dataset: DataSetEntry
    output: Annotated[str, doc("path of the file that was written, JSON Lines")]
    sha256: Annotated[Sha256, doc("of that file")]
    n_made: Annotated[Count, doc("mutations that were made")]
    n_without: Annotated[Count, doc("rows that have none in that file")]
    limits: LimitsEntry
    isolation: Isolation
    rows: Annotated[list[MutatedRow], doc("all rows, in the order of the data set")]


DOCUMENTS: Mapping[str, type[Struct]] = {
    "dataset_verification": DatasetVerification,
    "dataset_mutation": DatasetMutation,
}


def verification(
    data: DataSet, rows: list[VerifiedRow], n_runs: int, limits: Limits, isolation: Isolation
) -> DatasetVerification:
    n_wrong = sum(not row.ok for row in rows)
    return DatasetVerification(
        ok=not n_wrong,
        dataset=DataSetEntry.of(data),
        n_runs=n_runs,
        n_wrong=n_wrong,
        limits=LimitsEntry.of(limits),
        isolation=isolation,
        rows=rows,
    )


def mutation(  # noqa: PLR0913 -- as many as the document has
    data: DataSet,
    written: Sequence[Problem],
    mutated: Mapping[str, Mutated],
    limits: Limits,
    isolation: Isolation,
    *,
    output: str,
    sha256: str,
) -> DatasetMutation:
    rows = [_mutated_row(problem, mutated.get(problem.id)) for problem in written]
    return DatasetMutation(
        dataset=DataSetEntry.of(data),
        output=output,
        sha256=sha256,
        n_made=sum(row.made for row in rows),
        n_without=sum(row.sha256 is None for row in rows),
        limits=LimitsEntry.of(limits),
        isolation=isolation,
        rows=rows,
    )


def _mutated_row(problem: Problem, mutated: Mutated | None) -> MutatedRow:
    info = problem.mutation or Mutation()
    return MutatedRow(
        id=problem.id,
        sha256=problem.sha256 if problem.mutated_code is not None else None,
        made=mutated is not None and problem.mutated_code is not None,
        mutation_type=info.mutation_type,
        coverage_similarity=info.coverage_similarity,
        n_candidates=mutated.n_candidates if mutated else 0,
        n_valid=mutated.n_valid if mutated else 0,
        reason=mutated.reason if mutated else "it has one already",
    )
