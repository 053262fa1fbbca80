"""`socratic-runner optimisation ACTION`: the steps of the benchmark optimisation, one by one."""

from argparse import Namespace
from collections.abc import Sequence
from functools import partial

from socratic_bench.benchmarks.optimisation.commands import (
    AblationDocument,
    CertificateDocument,
    PlanDocument,
    ablate_run,
    plan_task,
    validate_task,
    write_file,
)
from socratic_bench.benchmarks.optimisation.settings import Settings
from socratic_bench.benchmarks.optimisation.validating import ItemCertificate
from socratic_bench.errors import ENDINGS
from socratic_bench.settings import absolute
from socratic_bench.types import plural

from . import resume, run
from .arguments import Parser, parse_strictly
from .flags import add_output
from .output import plain, print_document, say

OWN = ("plan", "validate", "ablate")
OF_RUNS = ("prepare", "evaluate")
# Words of the original pipeline, and the flags of `run` that take their place.
_WORDS = {"--max-workers": "--max-concurrency"}
DESCRIPTION = """\
plan lists the commits of a task. validate measures noise and the humans'
speed-up, and tries exploits, before any agent runs. prepare lets an agent make
patches, evaluate measures them; run does both. ablate measures patches without
each of their hunks.

examples:
  socratic-runner optimisation plan task.yaml --commits commits.txt --out plan.json
  socratic-runner optimisation validate task.yaml --from-plan plan.json --out cert.json
  socratic-runner optimisation prepare task.yaml --from-plan plan.json --model MODEL -o results
  socratic-runner optimisation evaluate RUN_ID --certificate cert.json -o results
  socratic-runner optimisation ablate task.yaml --from-plan plan.json \\
      --certificate cert.json --run-id RUN_ID --work-dir results/optimisation-work
"""
EPILOG = "exit codes: 0 ok, 2 usage, or an item is broken; prepare and evaluate as run"


def main(words: Sequence[str]) -> int:
    """Perform one step."""
    if words and words[0] in OF_RUNS:
        return _play(words[0], words[1:])
    parser = build_parser()
    flags = parse_strictly(parser, words)
    parser.refuse(
        [
            text
            for text, applies in {
                f"Missing argument ACTION: {', '.join((*OWN, *OF_RUNS))}.": flags.action not in OWN,
                "Missing argument TASK: the task file.": not flags.task,
                "ablate needs --run-id RUN_ID.": flags.action == "ablate" and not flags.run_id,
                "Only plan takes --commits.": flags.commits and flags.action != "plan",
            }.items()
            if applies
        ]
    )
    return {"plan": _plan, "validate": _validate, "ablate": _ablate}[flags.action](flags)


def build_parser() -> Parser:
    parser = Parser(prog="socratic-runner optimisation", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument(
        "action", metavar="ACTION", nargs="?", help="plan, validate, prepare, evaluate or ablate"
    )
    parser.offers["action"] = (*OWN, *OF_RUNS)
    parser.add_argument("task", metavar="TASK", nargs="?", help="task file, YAML or TOML")
    for flag, metavar, text in (
        ("--from-plan", "FILE", "plan (default: the task's own commits)"),
        ("--commits", "FILE", "plan: list of commits, HUMAN [PRE or parent=N] in a line"),
        ("--bench-cfg", "FILE", "containers, paths and agents"),
        ("--certificate", "FILE", "ablate: result of validate"),
        ("--isolation", "LEVEL", "auto, container, bwrap, unshare or none (default auto)"),
        ("--work-dir", "DIR", "folder of work trees (default optimisation-work)"),
        ("--run-id", "RUN_ID", "ablate: the run"),
        ("--out", "FILE", "write the document to a file, for later steps"),
    ):
        parser.add_argument(flag, metavar=metavar, help=text)
    add_output(parser, "no output on stderr")
    return parser


def _play(action: str, words: Sequence[str]) -> int:
    """`prepare` and `evaluate` are a run, or go on with one."""
    names = [word for given in words for word in _renamed(given)]
    if action == "evaluate":
        return resume.main([*names, "--benchmark", "optimisation"])
    if "--run-id" in names:
        at = names.index("--run-id")
        run_id, rest = names[at + 1 : at + 2], [*names[:at], *names[at + 2 :]]
        rest = [word for word in rest if word != "--resume"]
        is_task = bool(rest) and not rest[0].startswith("-")
        task = ["--task-file", rest[0]] if is_task else []
        benchmark = ("--benchmark", "optimisation")
        return resume.main([*run_id, *task, *rest[is_task:], *benchmark, "--prepare-only"])
    task = ["--task-file", names[0]] if names and not names[0].startswith("-") else []
    rest = names[len(task) // 2 :]
    return run.main(["--benchmark", "optimisation", *task, *rest, "--prepare-only"])


def _renamed(word: str) -> Sequence[str]:
    """A word of the original pipeline as `run` has it; `--flag=value` becomes two words."""
    name, equals, value = word.partition("=")
    if equals and name in (*_WORDS, "--run-id"):
        return _WORDS.get(name, name), value
    return (_WORDS.get(word, word),)


def _settings(flags: Namespace) -> Settings:
    def path_of(name: str) -> str | None:
        path = getattr(flags, name)
        return absolute(path) if path else None

    return Settings(
        model="",
        task_file=path_of("task"),
        from_plan=path_of("from_plan"),
        bench_cfg=path_of("bench_cfg"),
        certificate=path_of("certificate"),
        work_dir=path_of("work_dir"),
        isolation=flags.isolation or "auto",
    )


def _plan(flags: Namespace) -> int:
    document = plan_task(_settings(flags), flags.commits)
    return _print(document, lambda: say(f"{plural(len(document.items), 'item')} planned"), flags)


def _validate(flags: Namespace) -> int:
    report = (lambda _: None) if flags.quiet else _say_item
    document = validate_task(_settings(flags), report)
    unwritten = _print(document, partial(_say_certificate, document), flags)
    is_broken = any(item.status == "broken" for item in document.items)
    return unwritten or (ENDINGS["usage"].exit_code if is_broken else 0)


def _ablate(flags: Namespace) -> int:
    document = ablate_run(_settings(flags), flags.run_id)
    return _print(document, partial(_say_ablation, document), flags)


def _print(
    document: PlanDocument | CertificateDocument | AblationDocument,
    words: partial[None] | object,
    flags: Namespace,
) -> int:
    if flags.out:
        write_file(document, flags.out)
    assert callable(words)  # noqa: S101 -- of this module
    return print_document(document, words=words, flags=vars(flags))


def _say_item(item: ItemCertificate) -> None:
    if item.human is None or item.noise_floor is None:
        say(f"{plain(item.item_id)}: {item.status}")
    else:
        caught = [exploit for exploit in item.exploits if exploit.caught is not None]
        limits = f" ({item.human.low:.2f} to {item.human.high:.2f})" if item.human.low else ""
        status = item.status.replace("_", " ")
        say(
            f"{plain(item.item_id)}: {status}, human {item.human.median:.2f} "
            f"times as fast{limits}, noise {100 * item.noise_floor:.1f} %, detectable "
            f"{item.detectable or 0:.2f}, exploits caught "
            f"{sum(bool(exploit.caught) for exploit in caught)} of {len(caught)}"
        )
    for problem in item.problems:
        say(f"    - {plain(problem)}")


def _say_certificate(document: CertificateDocument) -> None:
    items = plural(len(document.items), "item")
    say(f"{document.n_measurable} of {items} can be measured; isolation {document.isolation}")


def _say_ablation(document: AblationDocument) -> None:
    for patch in document.patches:
        say(f"{plain(patch.item_id)}, {patch.whose}: {patch.message or ''}")
        for hunk in patch.hunks:
            word = {True: "matters", False: "does not matter", None: "undecided"}[hunk.matters]
            say(f"    {plain(hunk.file)} hunk {hunk.hunk}: {word}")
