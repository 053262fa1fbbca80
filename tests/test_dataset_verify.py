"""`dataset verify`: programs executed anew, whatever they do, and what is told of each row.

What begins processes of its own is played in a container that bounds them, by the image's tests.
"""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from socratic_bench.benchmarks.execution.literals import is_literal
from tests.command import ROOT, environment, run
from tests.fakes import PATIENCE_S
from tests.test_dataset_reading import ROW, SINGLE, UNMUTATED, written

SHIPPED_FILE = "socratic_bench/benchmarks/execution/data/problems.jsonl"
SECRET = "no-program-may-see-it"
SECOND_S = ("--timeout", "1.5", "--runs", "2")


def verified(*words, env=None):
    """Exit code, document and words."""
    outcome = run("dataset", "verify", *words, env=env)
    assert outcome.stdout.count(b"\n") == 1, outcome
    return outcome.exit_code, json.loads(outcome.stdout), outcome.stderr


def row(name, body, output="5", head="", **more):
    """A program of one call that should give 5; the mutated one gives 6."""
    code = f"{head}\ndef f(x):\n{body}\n"
    mutant = "def f(x):\n    return x + 1\n"
    made = {"code": code, "input": "f(5)", "output": output, "mutated_code": mutant}
    return {"id": name, "mutated_output": "6", **made, **more}


# What a row's program does -> what is told of it.
FAULTS = {
    "wrong": (row("wrong", "    return 4"), "wrong_output"),
    "boolean": (row("boolean", "    return True", output="1"), "wrong_output"),
    "tuple": (row("tuple", "    return (5,)", output="[5]"), "wrong_output"),
    "stored": (row("stored", "    return x", output="<5>"), "stored_not_literal"),
    "object": (row("object", "    return f"), "not_literal"),
    "prints itself": (
        row(
            "prints itself",
            "    return [P()]",
            output="[5]",
            head="class P:\n    def __repr__(self):\n        return '5'",
        ),
        "not_literal",
    ),
    "own list": (
        row(
            "own list",
            "    return L([5])",
            output="[5]",
            head="class L(list):\n    def __repr__(self):\n        return '[5]'",
        ),
        "not_literal",
    ),
    "within": (
        row("within", "    x = []\n    x.append(x)\n    return x", output="[[...]]"),
        "not_literal",
    ),
    "order": (row("order", "    return list({'a', 'b', 'c', 'd', 'e', 'f'})"), "nondeterministic"),
    "chance": (row("chance", "    return random.random()"), "nondeterministic"),
    "raises": (row("raises", "    raise KeyError('five')"), "error"),
    "no program": (row("no program", "    return ("), "error"),
    "leaves": (row("leaves", "    sys.exit(0)", head="import sys"), "error"),
    "loop": (
        row(
            "loop",
            "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    while True:\n        pass",
            head="import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)",
        ),
        "timeout",
    ),
    "memory": (row("memory", "    return len('x' * 10**11)"), "memory"),
    "flood": (row("flood", "    while True:\n        print('flood' * 99)"), "output"),
    "gigabyte": (row("gigabyte", "    return 'x' * 10**6"), "output"),
    "exits": (row("exits", "    os._exit(0)", head="import os"), "no_result"),
    "closes": (
        row("closes", "    os.closerange(0, 4096)\n    return 5", head="import os"),
        "no_result",
    ),
    "forges": (
        row(
            "forges",
            "    for n in range(64):\n"
            "        try:\n"
            '            os.write(n, b\'{"outcome": "ok", "cases": [{"repr": "5"}]}\\n\')\n'
            "        except OSError:\n"
            "            pass\n"
            "    os._exit(0)",
            head="import os",
        ),
        "no_result",
    ),
    "patches": (
        row(
            "patches", "    builtins.repr = lambda value: '5'\n    return 6", head="import builtins"
        ),
        "wrong_output",
    ),
    "crash": (row("crash", "    ctypes.string_at(0)", head="import ctypes"), "crashed"),
    "file": (row("file", "    open('/tmp/of-a-program', 'w')\n    return 5"), "error"),
    "socket": (
        row("socket", "    socket.socket()\n    return 5", head="import _socket as socket"),
        "error",
    ),
    "command": (
        row("command", "    return subprocess.call(['true'])", head="import subprocess"),
        "error",
    ),
    "others": (row("others", "    return x", head="import numpy"), "error"),
    "kills": (
        row("kills", "    os.kill(os.getppid(), 9)\n    return 5", head="import os"),
        "error",
    ),
}
RIGHT = [
    ROW,
    SINGLE,
    row("set", "    return {str(n) for n in range(x)}", output="{'4', '3', '2', '1', '0'}"),
    row("preamble", "    return Counter([x])[x] + math.floor(gcd(8, 12))"),
    row("float", "    return [float('nan'), -0.0, 5.0]", output="[nan, 0, 5]"),
    row("thread", "    found = []\n    t = threading.Thread(target=found.append, args=(x,))\n"
        "    t.start()\n    t.join()\n    return found[0]", head="import threading"),
    row("classes", "    return P(x).x", head="from dataclasses import dataclass\n"
        "@dataclass\nclass P:\n    x: 'int'\n"),
    row("imports", "    return x", head="import difflib, pprint, zoneinfo, csv, html, traceback\n"
        "import asyncio, socket, subprocess, collections.abc, inspect, weakref, warnings\n"
        "from concurrent.futures import ThreadPoolExecutor"),
    row("as used", "    return datetime.datetime.strptime('5', '%d').day, '\\N{BULLET}', P({}),\\\n"
        "        'é'.encode('cp1252')", output="(5, '•', {}, b'\\xe9')",
        head="class P(dict): pass"),
    row("prints", "    print('x' * 1000)\n    return x"),
    row("empty", "    return os.environ.get('AWS_SECRET_ACCESS_KEY', x)", head="import os"),
]  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """One verification of everything that can go wrong, and of what is right."""
    folder = tmp_path_factory.mktemp("hostile")
    env = environment(AWS_SECRET_ACCESS_KEY=SECRET)
    with neighbour(env) as process:
        reads = f"    return open('/proc/{process.pid}/environ').read()"
        rows = [*(made for made, _ in FAULTS.values()), *RIGHT, row("spies", reads), UNMUTATED]
        return verified(written(folder / "rows.jsonl", *rows), *SECOND_S, env=env)


@contextmanager
def neighbour(env):
    """A process of the programs' own user, which holds a secret."""
    user = 65534 if os.geteuid() == 0 else None
    command = ["/bin/sleep", str(PATIENCE_S)]
    with subprocess.Popen(command, env=env, user=user, cwd="/") as process:
        yield process
        process.kill()


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_with_a_row_is_told(name, hostile):
    _, document, _ = hostile
    row = next(row for row in document["rows"] if row["id"] == name)

    assert [finding["fault"] for finding in row["findings"]] == [FAULTS[name][1]]
    assert (row["ok"], row["findings"][0]["program"]) == (False, "original")


def test_right_rows_are_right_and_all_are_told_of(hostile):
    code, document, words = hostile
    right = [row["id"] for row in document["rows"] if row["ok"]]

    assert right == [*(row["id"] for row in RIGHT), "plain"]
    assert (code, document["ok"], document["n_wrong"]) == (2, False, len(FAULTS) + 1)
    assert document["dataset"]["without_mutation"] == ["plain"]
    assert f"{len(document['rows'])} rows, {len(FAULTS) + 1} wrong" in words
    assert "raises: original, call 1: it raises KeyError: 'five'." in words


def test_reasons_say_what_programs_may_not(hostile):
    words = hostile[2]

    for name in ("socket", "command", "kills"):
        assert f"{name}: original, call 1: it raises PermissionError: [Errno 1]" in words
    assert words.count("(programs have no processes, sockets, signals or files)") >= 4
    assert "No module named 'numpy': programs have the standard library alone." in words
    assert "prints itself: original, call 1: its output is not a Python literal: it holds a P." in (
        words
    )


def test_programs_see_neither_secrets_of_others_nor_files(hostile):
    _, document, _ = hostile
    (spies,) = (row for row in document["rows"] if row["id"] == "spies")

    assert SECRET not in json.dumps(document)
    if document["isolation"]["hides_files"]:  # older kernels cannot
        assert spies["findings"][0]["fault"] == "error"
        assert "PermissionError" in spies["findings"][0]["message"]


def test_the_document_says_what_stood_between_programs_and_machine(hostile):
    _, document, words = hostile
    isolation = document["isolation"]

    assert isolation["user"] == ("nobody" if os.geteuid() == 0 else "own")
    assert isolation["refuses_calls"] is True
    assert ("programs ran with network access" in words) == isolation["network_open"]
    assert document["limits"] == {
        "timeout_s": 1.5,
        "memory_bytes": 512 * 2**20,
        "printed_bytes": 65_536,
    }


def test_nothing_of_it_is_left(hostile):
    assert not Path("/tmp/of-a-program").exists()  # noqa: S108 -- where a program tried to write
    assert none_is_left()


def test_the_mutated_program_is_executed_too(tmp_path):
    place = written(tmp_path / "rows.jsonl", {**ROW, "mutated_output": ["4", "5"]})
    code, document, _ = verified(place, "--runs", "2")
    (finding,) = document["rows"][0]["findings"]

    assert (code, finding["program"], finding["case"]) == (2, "mutated", 1)
    assert (finding["stored"], finding["found"]) == ("5", ["4", "4"])


def test_the_shipped_problems_are_right(tmp_path):
    code, document, _ = verified("shipped")

    assert (code, document["ok"], len(document["rows"])) == (0, True, 24)
    assert document["n_runs"] == 3


def test_a_verification_that_is_interrupted_leaves_nothing(tmp_path):
    loops = [row(f"loop-{n}", "    while True:\n        pass") for n in range(9)]
    place = written(tmp_path / "rows.jsonl", *loops)
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "dataset", "verify", place, "--timeout", "300"],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    while len(servers(process.pid)) < 3:
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.communicate()

    assert none_is_left()


def test_mistakes_of_the_command_line_are_told_together():
    code, document, _ = verified("--runs", "1", "--timeout", "0", "--output", "x")

    assert (code, document["kind"]) == (2, "error")
    for words in ("argument PLACE", "not 1", "not 0", "neither --output nor --replace"):
        assert words in document["error"]["message"]


def servers(parent):
    """Those that a command has begun, to execute programs."""
    return [
        process
        for process, words, above in processes()
        if b"server.main()" in words and above == parent
    ]


def orphans():
    """Servers and programs of which nobody knows any more: init has them, and no Python of ours.

    In a container that is process 1, whatever it runs. What the others run is asked of their words:
    which file it is, nobody else may read of one that keeps its memory from its programs.
    """
    return [
        process
        for process, words, above in processes()
        if b"server.main()" in words and f"{ROOT}/".encode() in words and not is_ours(above)
    ]


def none_is_left():
    """Another test may have killed what had begun some just now: these end by themselves."""
    until_s = time.monotonic() + PATIENCE_S
    while (left := orphans()) and time.monotonic() < until_s:
        time.sleep(0.05)
    return not left


def is_ours(process):
    with suppress(OSError):
        program = Path(f"/proc/{process}/cmdline").read_bytes().partition(b"\0")[0]
        return process != 1 and Path(os.fsdecode(program)).name.startswith("python")
    return False


def processes():
    """Each with its words and its parent."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            words = (entry / "cmdline").read_bytes()
            stat = (entry / "stat").read_text(encoding="latin-1")
            yield int(entry.name), words, int(stat.rpartition(")")[2].split()[1])


def test_outputs_of_the_shipped_problems_are_literals_of_many_types():
    rows = [json.loads(line) for line in (ROOT / SHIPPED_FILE).read_text().splitlines()]
    outputs = [
        text
        for row in rows
        for column in ("output", "mutated_output")
        for text in ([row[column]] if isinstance(row[column], str) else row[column])
    ]

    assert all(map(is_literal, outputs))
    kinds = {type(eval(text)).__name__ for text in outputs}  # noqa: S307 -- our own literals
    assert kinds >= {"bool", "int", "float", "list", "tuple", "dict", "set", "bytes"}


def test_documents_fit_their_published_schemas(hostile, tmp_path):
    place, output = written(tmp_path / "rows.jsonl", UNMUTATED), str(tmp_path / "made.jsonl")
    made = json.loads(run("dataset", "mutate", place, "--output", output).stdout)

    for document in (hostile[1], made):
        schema = json.loads(run("schema", document["kind"], "--benchmark", "execution").stdout)
        assert "$schema" in schema, schema
        assert [*Draft202012Validator(schema).iter_errors(document)] == []
    assert made["kind"] == "dataset_mutation"
