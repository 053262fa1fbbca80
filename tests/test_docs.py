"""Examples in the pages are run, links followed, lists compared with the program, words counted."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import unquote

import pytest

from socratic_bench import RunConfig
from socratic_bench.benchmarks.socratic.metrics import summarise
from socratic_bench.benchmarks.socratic.turn import SocraticTurn
from socratic_bench.emulator import MODEL_IDS, Emulator
from socratic_bench.emulator.faults import KINDS as FAULT_KINDS
from socratic_bench.errors import ENDINGS
from socratic_bench.judging.verdict import STOPS
from socratic_bench.turns import Judged, Unscored, Verdict
from socratic_bench.types import Completion, Message
from tests import ports
from tests.fakes import PATIENCE_S
from tests.stand_in import StandIn

ROOT = Path(__file__).resolve().parents[1]
USER_PAGES = sorted((ROOT / "docs").glob("*.md"))
DEV_PAGES = sorted((ROOT / "docs/dev").glob("*.md"))
ENTRY_PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")]
SKILL = ROOT / "skills/socratic-runner/SKILL.md"
PAGES = [*ENTRY_PAGES, SKILL, *USER_PAGES, *DEV_PAGES]
FLAGS, OUTPUT, BENCHMARK, EMULATOR = (
    (ROOT / f"docs/{name}.md").read_text()
    for name in ("flags", "output", "benchmark", "dev/emulator")
)
# A page may have so many words; generated tables are left out.
USERS_WORDS, PAGE_WORDS, CONTRIBUTING_WORDS = 21_700, 2_000, 800
GENERATED = re.compile(r"^<!-- (.+) -->\n.*?^<!-- end of \1 -->", re.MULTILINE | re.DOTALL)

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN_ONLY = ("", "text", "toml", "yaml", "dockerfile")  # languages that are not run
SAVED = re.compile(r"Save this as `([\w.-]+)`[^\n]*\n+\Z")  # words before a file to be kept
CUT = re.compile(r"^ *…$", re.MULTILINE)  # a line that stands for lines left out
DOCUMENTED_PORT = "8765"  # becomes a free one
# Where no output is shown, fewer turns show as well that the lines work.
MANY_TURNS = re.compile(r"(?<=--turns )\d+|(?<=^turns = )\d+", re.MULTILINE)
FEW_TURNS = "2"

# Commands that a bash block may use as they are. Whatever is neither here nor in STAND_INS is not
# found by the shell, so that a block that no rule covers fails.
PLAIN = ("bash", "cat", "env", "grep", "id", "ls", "mkdir", "sleep", "wc")
BUCKET = "socratic-benchmark-data"
# Variables that stay as they are, in a container, too: how libraries begin.
OF_THE_MACHINE = ("LANG", "LC_", "LD_", "MALLOC_", "GLIBC_", "OPENBLAS_", "OMP_", "FONTCONFIG_")

# What a command becomes in a test. `docker run` gets the variables that -e names and no others.
STAND_INS = r"""
import json, os, re, sys, tomllib
from pathlib import Path

ROOT, (name, *words) = Path(os.environ["DOCS_ROOT"]), sys.argv[1:]
KEPT = ("PATH", "PYTHON", "DOCS_", "AWS_ENDPOINT_URL", "AWS_EC2_", "AWS_CONFIG", "AWS_SHARED")
SWITCHES = ("--rm", "-i", "-t", "--read-only")
OPTIONS = ("--user", "--network", "--cap-drop", "--security-opt", "--memory", "--pids-limit")


def check(is_known):
    if not is_known:
        sys.exit(f"no rule of tests/test_docs.py covers {name} {' '.join(words)}")


def make(target):
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    check(recipe)
    if target == "demo":
        line = recipe[1].replace("\\\n", " ").strip().removeprefix("@")
        os.execv("/bin/sh", ["sh", "-c", line.replace("$(BIN)/python", sys.executable)])


def docker_run(rest):
    kept = (*KEPT, *json.loads(os.environ["DOCS_OF_THE_MACHINE"]))
    environ = {key: value for key, value in os.environ.items() if key.startswith(kept)}
    mounts = {}
    while rest[0].startswith("-"):
        option, equals, value = rest.pop(0).partition("=")
        if option in SWITCHES:
            continue
        value = value if equals else rest.pop(0)
        if option == "-e":
            key, equals, text = value.partition("=")
            if equals or key in os.environ:
                environ[key] = text if equals else os.environ[key]
        elif option == "-v":
            source, target, *_ = value.split(":")
            mounts[target] = source
        else:
            check(option in OPTIONS)
    image, *arguments = rest
    check(image == "socratic-runner")
    arguments = [mounts.get(word, word) for word in arguments]
    command = json.loads(os.environ["DOCS_COMMAND"])
    os.execve(command[0], [*command, *arguments], environ)


match name, words:
    case "aws", _:
        os.execv(sys.executable, [sys.executable, "-m", "awscli", *words])
    case "make", _:
        for target in words:
            make(target)
    case "pip", ["install", package]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        check({"", *project["optional-dependencies"]}.issuperset(re.split(r"\W+", package)))
    case "docker", ["run", *rest]:
        docker_run(rest)
    case "docker", ["build", *_, "."]:
        check((ROOT / "Dockerfile").exists())
    case "docker", ["compose", "run", "--rm", service, *_]:
        check(f"\n  {service}:\n" in (ROOT / "docker-compose.yml").read_text())
    case _:
        check(False)
"""
NAMES = ("aws", "make", "pip", "docker")


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    text: str
    before: str
    after: str

    @property
    def shorter(self) -> str:
        """The text, with fewer turns unless the next block shows what comes out."""
        following = FENCE.search(self.after)
        is_shown = following is not None and following[1].strip() == "text output"
        return self.text if is_shown else MANY_TURNS.sub(FEW_TURNS, self.text)


def blocks(document: Path) -> list[Block]:
    text = document.read_text()
    return [
        Block(
            line=text.count("\n", 0, m.start()) + 1,
            language=m[1].strip(),
            text=m[2],
            before=text[: m.start()],
            after=text[m.end() :],
        )
        for m in FENCE.finditer(text)
    ]


@dataclass
class Reader:
    """Somebody who types in what a document shows, block after block, in one shell."""

    folder: Path
    environ: dict[str, str]
    stand_in: StandIn
    stdout: str = ""
    stderr: str = ""

    def type_in(self, block: Block) -> None:
        """Run a block, compare it with the last output, or check its form."""
        match block.language:
            case "bash":
                self._shell(block.shorter)
            case "python":
                self._run([sys.executable, "-c", block.text])
            case "json":
                json.loads(block.text)
            case "text output":
                self._compare(block.text)
            case language:
                assert language in SHOWN_ONLY, f"no rule for a block of {language!r}"
                if language == "toml":
                    tomllib.loads(block.text)
                if saved := SAVED.search(block.before):
                    (self.folder / "work" / saved[1]).write_text(block.shorter)

    def _shell(self, text: str) -> None:
        state = self.folder / ".state"
        state.touch()
        with ports.reserved() as holding:
            text = text.replace(DOCUMENTED_PORT, str(ports.number(holding)))
            script = f". {state}\ntrap 'export -p > {state}' EXIT\n{text}"
            self._run(["bash", "-euo", "pipefail", "-c", script])

    def _run(self, command: list[str]) -> None:
        with tempfile.TemporaryFile("w+") as stdout, tempfile.TemporaryFile("w+") as stderr:
            process = subprocess.Popen(
                command,
                cwd=self.folder / "work",
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
            try:
                self.stand_in.serve(process, PATIENCE_S)
            finally:
                with suppress(ProcessLookupError):
                    # What a block has left in the background ends with it.
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            self.stdout, self.stderr = (
                file.read() for file in (stdout, stderr) if not file.seek(0)
            )

        assert process.returncode == 0, (
            f"exit code {process.returncode}\n{self.stdout}\n{self.stderr}"
        )

    def _compare(self, shown: str) -> None:
        """The lines shown, in their order, are lines of the last output."""
        streams = [masked(text) for text in (self.stderr, self.stdout, *pretty(self.stdout))]
        passages = [passage.strip("\n") for passage in CUT.split(masked(shown))]

        assert any(in_order(passages, stream) for stream in streams), "\n".join(streams)


def masked(text: str) -> str:
    """The text without what differs from run to run."""
    text = re.sub(r"run-[0-9A-HJKMNP-TV-Z]{26}", "run-ID", text)
    text = re.sub(r"(?m)^\w{4} (?=turn |note: |completed: )", "TAG ", text)
    text = re.sub(r"(?<= )[\d.]+ s$", "N s", text, flags=re.MULTILINE)
    text = re.sub(r"(?<=answered in )\d+ ms", "N ms", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    return re.sub(r'("\w+_(?:ms|seconds)": )[\d.]+', r"\1N", text)


def pretty(text: str) -> list[str]:
    try:
        return [json.dumps(json.loads(text), indent=2, ensure_ascii=False)]
    except ValueError:
        return []


def in_order(passages: list[str], stream: str) -> bool:
    position = 0
    for passage in filter(None, passages):
        found = f"\n{stream}\n".find(f"\n{passage}\n", position)
        if found < 0:
            return False
        position = found + len(passage)
    return True


@pytest.fixture(scope="session")
def emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


@pytest.fixture(scope="session")
def bucket(moto_url: str) -> str:
    connection = HTTPConnection(moto_url.removeprefix("http://"))
    connection.request("PUT", f"/{BUCKET}")
    status = connection.getresponse().status
    connection.close()

    assert status == 200
    return BUCKET


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    stand_in = StandIn(tmp_path_factory.mktemp("stand-in"))
    yield stand_in
    stand_in.close()


@pytest.fixture
def reader(
    tmp_path: Path, emulator: Emulator, moto_url: str, bucket: str, stand_in: StandIn
) -> Reader:
    commands = tmp_path / "bin"
    for folder in (commands, tmp_path / "work", tmp_path / "home"):
        folder.mkdir()
    (tmp_path / "work" / "deploy").symlink_to(ROOT / "deploy")
    (tmp_path / "stand_ins.py").write_text(STAND_INS)
    lines = {name: f"{sys.executable} {tmp_path}/stand_ins.py {name}" for name in NAMES}
    lines |= {"python3": sys.executable, "socratic-runner": " ".join(stand_in.command)}
    for name, line in lines.items():
        file = commands / name
        file.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        file.chmod(0o755)
    for name in PLAIN:
        found = next(p for p in (Path("/bin") / name, Path("/usr/bin") / name) if p.exists())
        (commands / name).symlink_to(found)
    environ = {
        **{name: value for name, value in os.environ.items() if name.startswith(OF_THE_MACHINE)},
        "PATH": str(commands),
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
        "DOCS_ROOT": str(ROOT),
        "DOCS_COMMAND": json.dumps(stand_in.command),
        "DOCS_OF_THE_MACHINE": json.dumps(OF_THE_MACHINE),
        "AWS_ACCESS_KEY_ID": "stand-in",
        "AWS_SECRET_ACCESS_KEY": "stand-in",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL_BEDROCK": emulator.url,
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": emulator.url,
        "AWS_ENDPOINT_URL_S3": moto_url,
        "AWS_ENDPOINT_URL_STS": moto_url,
    }
    return Reader(tmp_path, environ, stand_in)


@pytest.mark.parametrize("document", PAGES, ids=lambda path: path.name)
def test_every_block_of_a_document_does_what_it_shows(document: Path, reader: Reader) -> None:
    for block in blocks(document):
        try:
            reader.type_in(block)
        except (AssertionError, ValueError, subprocess.TimeoutExpired) as error:
            pytest.fail(f"{document.name}:{block.line}: {error}\n{block.text}", pytrace=False)

    assert len(blocks(document)) == document.read_text().count("\n```") // 2


# --- what the documents list ---------------------------------------------------------------------


def rows(text: str, width: int) -> list[list[str]]:
    """The cells of all rows of tables with that many columns, but their heads."""
    found = [
        line[1:-1].split("|") for line in text.splitlines() if line.startswith(("| `", "| | `"))
    ]
    return [[cell.strip() for cell in cells] for cells in found if len(cells) == width]


def words_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def anchors(document: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", document.read_text()))
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        path, _, anchor = unquote(target).partition("#")
        if path.startswith(("http:", "https:", "mailto:")):
            continue
        file = (document.parent / path) if path else document
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)

    assert broken == []


def test_every_page_says_for_whom_it_is_and_is_reached_from_the_readme() -> None:
    readme = ENTRY_PAGES[0].read_text()
    pages = [*USER_PAGES, *DEV_PAGES]

    assert [str(page) for page in pages if f"({page.relative_to(ROOT)})" not in readme] == []
    assert [
        page.name
        for page in (*pages, ENTRY_PAGES[1])
        if not re.match(r"# .+\n\nFor ", page.read_text())
    ] == []


def test_pages_are_short() -> None:
    def n_words(page: Path) -> int:
        prose = GENERATED.sub("", page.read_text())
        return sum(any(map(str.isalnum, word)) for word in prose.split())

    developers = {"architecture.md"}
    users = [page for page in USER_PAGES if page.name not in developers]

    assert sum(map(n_words, [*users, ENTRY_PAGES[0]])) <= USERS_WORDS
    assert [page.name for page in DEV_PAGES if n_words(page) > PAGE_WORDS] == []
    assert n_words(ENTRY_PAGES[1]) <= CONTRIBUTING_WORDS


def test_every_flag_that_a_page_names_exists() -> None:
    """Pages quote flags of Docker and of tools in commands alone."""
    existing = set(re.findall(r"^\| `(?:-\w, )?(--[a-z][a-z0-9-]*)", FLAGS, re.MULTILINE))
    existing |= {"--version", "--help", "--output-dir"}
    named = {
        flag
        for page in (*ENTRY_PAGES, SKILL, *USER_PAGES)
        for flag in re.findall(r"`(--[a-z][a-z0-9-]*)", FENCE.sub("", page.read_text()))
    }

    assert named - existing == {"--network", "--build-arg", "--no-cache"}


def test_every_ending_is_described() -> None:
    described = {
        words_in(reason)[0]: (status, exits, curated)
        for reason, _, status, exits, curated in rows(OUTPUT, 5)
    }
    expected = {
        reason: (
            ending.status,
            "129 SIGHUP, 130 SIGINT, 143 SIGTERM"
            if reason == "interrupted"
            else str(ending.exit_code),
            "yes" if ending.status == "completed" else "no",
        )
        for reason, ending in ENDINGS.items()
    }

    assert described == expected


def test_the_readme_has_every_exit_code() -> None:
    codes = re.findall(r"^\| ([\d, ]+) \|", ENTRY_PAGES[0].read_text(), re.MULTILINE)

    assert {int(code) for cell in codes for code in cell.split(",")} == {
        *(ending.exit_code for ending in ENDINGS.values()),
        5,
        129,
        143,
    }


def test_the_emulators_models_and_faults_are_listed() -> None:
    assert {*FAULT_KINDS, *MODEL_IDS} <= set(words_in(FENCE.sub("", EMULATOR)))


def test_every_reason_for_a_missing_verdict_is_described() -> None:
    passage = BENCHMARK.partition("## Turns without a score")[2].partition("`flaw`")[0]
    described = {word for cells in rows(passage, 2) for word in words_in(cells[0])}
    ours = {"unreadable_verdict", "empty_verdict", "invalid_verdict"}

    assert described == {
        *STOPS.values(),
        *ours,
        "empty_reply",
        "unavailable",
        "budget",
        "run_ended",
        "quorum",
    }


# --- the worked example --------------------------------------------------------------------------


def turn(index: int, score: float | None) -> SocraticTurn:
    reply = Completion(
        message=Message.assistant("Why?"),
        stop_reason="end_turn",
        usage=None,
        latency_ms=1.0,
        service_latency_ms=None,
        attempts=(),
        request_id=None,
        finished_at=datetime.now(UTC),
    )
    scores = {"form": 0.0, "substance": 0.0, "purity": 0.0} | ({"form": score} if score else {})
    outcome = (
        Unscored(reason="invalid_verdict", message="")
        if score is None
        else Verdict(scores=scores, rationale={}, judge_model=None)
    )
    return SocraticTurn(
        index=index,
        prompt="Hello",
        reply=reply,
        judged=Judged(outcome=outcome, calls=(), finished_at=reply.finished_at),
    )


def example_scores() -> list[float]:
    passage = BENCHMARK.partition("### Worked example")[2]
    return [float(score) for score in re.findall(r"^\| \d \| ([\d.]+) \|", passage, re.MULTILINE)]


@pytest.mark.parametrize(
    ("unjudged", "overall", "compliance", "half_life"), [((), 6.2, 1.0, 1), ((1,), 6.0, 1.0, 2)]
)
def test_the_worked_example_holds(
    unjudged: tuple[int, ...], overall: float, compliance: float, half_life: int
) -> None:
    scores = [None if i in unjudged else score for i, score in enumerate(example_scores())]

    metrics = summarise(RunConfig(model="m"), [turn(i, score) for i, score in enumerate(scores)])

    assert example_scores() == [8.5, 7.0, 6.5, 5.0, 4.0]
    assert metrics["overall_score"] == overall
    assert metrics["compliance_rate"] == compliance
    assert metrics["half_life"] == half_life
    passage = BENCHMARK.partition("### Worked example")[2]
    assert all(f"**{value}**" in passage for value in (overall, compliance, half_life))
