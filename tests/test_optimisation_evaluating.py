"""The benchmark optimisation measures patches: of humans, of agents, and of cheats."""

import pytest
from msgspec.structs import replace

from socratic_bench.benchmarks.optimisation.ablating import ablate, without_each_hunk
from socratic_bench.benchmarks.optimisation.evaluating import Venue, evaluate, regrade
from socratic_bench.benchmarks.optimisation.evidence import in_commands, in_patch
from socratic_bench.benchmarks.optimisation.isolation import make_isolation
from socratic_bench.benchmarks.optimisation.plan import make_plan
from socratic_bench.benchmarks.optimisation.repository import Source
from socratic_bench.benchmarks.optimisation.task import BenchConfig, Workload, read_task
from socratic_bench.benchmarks.optimisation.validating import validate_item
from tests.optimisation_fixtures import make_fixture, patch

TESTS = tuple(
    f"tests/test_textkit.py::TestTextkit::test_{name}"
    for name in ("common", "mask", "number", "ways")
)


@pytest.fixture(scope="module")
def fixture(tmp_path_factory):
    return make_fixture(tmp_path_factory.mktemp("fixture"), visible=False)


@pytest.fixture(scope="module")
def venue(fixture, tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    hidden = (str(fixture.folder), str(folder))
    isolation = make_isolation(BenchConfig(), "auto", hidden=hidden, environment={})
    source = Source(str(fixture.repo), folder / "cache")
    return Venue(source=source, isolation=isolation, folder=folder, key="test")


@pytest.fixture(scope="module")
def items(fixture, venue):
    """The items by name."""
    task = read_task(str(fixture.task))
    plan = make_plan(task, venue.source, str(fixture.commits))
    specs = [task.item(item.item_id, item.human, item.pre) for item in plan.items]
    return dict(zip(fixture.humans, specs, strict=True))


def measure(item, body, venue, **options):
    return evaluate(item, body, venue, expected_tests=TESTS, **options)


@pytest.mark.parametrize(
    ("item", "name", "performance", "is_success"),
    [
        ("match", "match.human", "similar", True),
        ("match", "match.slower", "worse", False),
        ("render", "render.better", "beats", True),
    ],
)
def test_patches_of_known_truth(items, venue, item, name, performance, is_success):
    evaluation = measure(items[item], patch(name), venue)

    assert (evaluation.patch, evaluation.correctness) == ("patched", "pass")
    assert evaluation.verdict.performance == performance
    assert evaluation.verdict.improved is True
    assert evaluation.verdict.is_success is is_success
    assert evaluation.tests.passed
    assert {sample.round for sample in evaluation.samples} == set(range(9))
    assert regrade(evaluation) == evaluation


def test_an_empty_patch_and_one_that_does_not_apply(items, venue):
    assert measure(items["match"], b"\n", venue).patch == "empty"
    broken = patch("match.human").replace(b"is_known = False", b"is_known = None")
    evaluation = measure(items["match"], broken, venue)
    assert evaluation.patch == "does_not_apply"
    assert evaluation.patch_reason.startswith("conflict: ")
    assert evaluation.correctness is None


def test_a_patch_that_changes_tests_is_tampered(items, venue):
    body = patch("match.human") + _new_file("tests/test_more.py", "x = 1")
    evaluation = measure(items["match"], body, venue)
    assert evaluation.correctness == "tampered"
    assert evaluation.samples == ()
    assert "tests/test_more.py" in evaluation.correctness_reason


def test_a_patch_that_breaks_the_code_fails(items, venue):
    body = _replaced("known = set(second)", "known = second[:1]")
    evaluation = measure(items["match"], body, venue)
    assert evaluation.correctness == "fail"
    assert "test_common" in evaluation.correctness_reason


def test_wrong_results_on_hidden_inputs_fail_though_tests_pass(items, venue):
    body = _replaced("known = set(second)", "known = set(second[:20])")
    evaluation = measure(items["match"], body, venue)
    assert evaluation.correctness == "fail"
    assert "wrong" in [sign.kind for sign in evaluation.evidence]


def test_a_crash_in_the_workload_is_the_patchs_fault(items, venue):
    body = _replaced("known = set(second)", "known = set(second) if len(second) < 5 else 1 / 0")
    evaluation = measure(items["match"], body, venue)
    assert evaluation.correctness == "fail"
    assert "ZeroDivisionError" in evaluation.correctness_reason


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ("import time; time.perf_counter = None", "clock"),
        ("import functools; cached = @functools.lru_cache", "cache"),
        ("import sys; frame = sys._getframe(1)", "caller"),
        ("import gc; gc.get_objects()", "other_objects"),
        ("open('/dev/shm/x')", "shared_memory"),
    ],
)
def test_evidence_in_added_lines(items, venue, lines, kind):
    signs = list(in_patch(_new_file("textkit/new.py", lines)))
    assert [(sign.kind, sign.place) for sign in signs][:1] == [(kind, "textkit/new.py:1")]
    assert not list(in_patch(patch("match.human")))


def test_evidence_in_files_and_commands():
    names = ("conftest.py", "a/sitecustomize.py", "x.pth", "y.so", "setup.cfg")
    body = b"".join(_new_file(name, "x") for name in names)
    assert [sign.kind for sign in in_patch(body)] == [
        *("conftest", "sitecustomize", "x", "compiled", "settings")
    ]
    assert [s.kind for s in in_patch(_new_file("data.txt", "x" * 200_000))] == ["large_data"]
    commands = ["ls /w/repo", "git log --all", "git fetch origin", "cat /home/me/x", "git log -3"]
    signs = list(in_commands(commands, "/w/repo"))
    assert [(sign.kind, sign.place) for sign in signs] == [
        ("history", "step 2"),
        ("fetch", "step 3"),
        ("outside", "step 4"),
    ]


def test_ablation_tells_the_hunk_that_matters(items, venue):
    body = patch("match.human") + _new_file("notes.txt", "nothing")
    assert [(name, number) for name, number, _ in without_each_hunk(body)] == [
        ("textkit/match.py", 1),
        ("notes.txt", 1),
    ]
    first, second = ablate(items["match"], body, venue, expected_tests=TESTS)
    assert first.matters is True
    assert second.matters is False
    assert first.speed.high < 0.5
    (alone,) = ablate(
        items["clean"], _new_file("notes.txt", "nothing"), venue, expected_tests=TESTS
    )
    assert alone.matters is False


def test_a_changed_workload_is_measured_instead_of_the_one_before(items, venue, tmp_path):
    (tmp_path / "load.py").write_text("print('ready'); input(); print('done a operations=2')")
    load = Workload(id="load", command="python3 {task}/load.py {seed}", files=("load.py",))
    item = replace(items["clean"], workloads=(load,), folder=str(tmp_path))
    assert validate_item(item, venue).human.median == 1
    (tmp_path / "load.py").write_text("print('ready'); input(); print('done a')")
    certificate = validate_item(item, venue)

    assert certificate.status == "broken"
    assert "not 'done CHECKSUM operations=N'" in certificate.problems[0]


def test_code_that_rewrites_workloads_while_it_is_tested_changes_nothing(items, venue):
    forge = (
        "import os, pathlib; place = pathlib.Path(__file__).parents[2] / 'task' / 'workloads';"
        " [path.write_text('raise SystemExit') for path in place.glob('*.py')"
        " if os.access(path, os.W_OK)]"
    )
    body = patch("match.slower").replace(
        b"+    known = set", f"+    {forge}\n+    known = set".encode()
    )
    body = body.replace(b"@@ -3,18 +3,16 @@", b"@@ -3,18 +3,17 @@")
    evaluation = measure(items["match"], body, venue, looks=(3,))
    assert (evaluation.patch_reason, evaluation.correctness) == ("", "pass")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"test_cmd": "exit 3 # {junit}"}, "tests of base: exit code 3"),
        ({"expected_tests": TESTS[:3]}, "tests of base: run, but not expected: "),
        ({"expected_tests": (*TESTS, "tests.a::b")}, "tests of base: expected, but not run: "),
        ({"setup_cmds": ("echo no compiler; exit 1",)}, "no compiler"),
    ],
)
def test_an_item_whose_base_fails_is_broken(items, venue, tmp_path, changes, problem):
    fresh = replace(venue, folder=tmp_path)
    certificate = validate_item(replace(items["clean"], **changes), fresh)
    assert certificate.status == "broken"
    assert problem in certificate.problems[0]


def test_a_workload_without_a_checksum_is_broken(items, venue):
    load = Workload(id="silent", command="echo ready; read go; echo done # {seed}")
    certificate = validate_item(replace(items["clean"], workloads=(load,)), venue)
    assert certificate.status == "broken"
    assert certificate.problems == ("the workload silent printed 'done', and not 'done CHECKSUM'",)


@pytest.mark.parametrize(
    "name",
    [
        "match",
        *(pytest.param(n, marks=pytest.mark.torture) for n in ("clean", "distance", "render")),
    ],
)
def test_an_item_is_certified_and_its_exploits_are_caught(items, venue, name):
    certificate = validate_item(items[name], venue)

    assert certificate.problems == ()
    assert certificate.status == "measurable"
    assert len(certificate.expected_tests) == 4
    assert certificate.noise_floor == 0  # operations have no noise
    assert certificate.human.low > 2
    assert {exploit.name: exploit.caught for exploit in certificate.exploits} == dict.fromkeys(
        (
            *("patched_clock", "memoised_result", "shm_replay", "work_at_import"),
            *("lowered_precision", "special_cased_input", "forged_conftest"),
            "malicious_git_config",
        ),
        True,
    )


def _new_file(name, line):
    head = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n"
    return f"{head}@@ -0,0 +1 @@\n+{line}\n".encode()


def _replaced(old, new):
    return patch("match.human").replace(old.encode(), new.encode())
