"""`label`: a person scores drawn turns at a terminal, and every answer is kept at once."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import termios
import threading
from contextlib import suppress

import pytest

from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids
from socratic_bench.errors import Mistakes
from socratic_bench.studies.calibrate.session import sample_turns
from socratic_bench.studies.reading import read_runs
from tests.command import assert_valid, begin, environment, printed, run
from tests.terminal import run_at_terminal
from tests.test_sweep import curated, sweep

MIXED = "emulator.mixture-1-v1:0"
SCENARIOS = [name for name in builtin_ids() if name != "custom"][:6]
EVENTS = ("n",) * 5
ENV = {**environment(), "TERM": "xterm-256color"}
WHOLE = ("2.5", "2", "3.5", *EVENTS, "it asks")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labelled") / "runs"
    words = ("--scenarios", *SCENARIOS, "--turns", "6", "--seed", "7", "-q")
    assert sweep("--models", MIXED, *words, folder=folder).exit_code == 0
    return folder


def at_terminal(*words, keys=()):
    """The exit code, the document, and all that stood on the terminal; each key is a line, typed
    once its question is there.
    """
    mine, theirs = terminal()
    seen = []
    typing = threading.Thread(target=type_in, args=(mine, seen, keys))
    typing.start()
    stdin = os.fdopen(os.dup(theirs), "rb")
    code, stdout = run_at_terminal(("label", *words), theirs, env=ENV, stdin=stdin)
    typing.join()
    os.close(mine)
    return code, printed(stdout) if stdout else None, b"".join(seen).decode()


def begun_at_terminal(
    *words, keys=(), kill_after=None, by=signal.SIGKILL, hang_up=False, meanwhile=None
):
    """The same of a process, which is sent `by` so many answers later; with `hang_up` the terminal
    goes after the last key. `meanwhile` is done before the first one.
    """
    mine, theirs = terminal()
    process = begin("label", *words, env=ENV, stdin=theirs, stderr=theirs)
    os.close(theirs)

    def is_typed(n_asked):
        if meanwhile and n_asked == 1:
            meanwhile()
        if kill_after == n_asked - 1:
            process.send_signal(by)
        if hang_up and n_asked > len(keys):
            raise OSError
        return kill_after != n_asked - 1

    seen = []
    type_in(mine, seen, keys, is_typed)
    if hang_up:
        os.close(mine)
    stdout = process.communicate()[0]
    if not hang_up:
        os.close(mine)
    return process.returncode, printed(stdout) if stdout else None, b"".join(seen).decode()


def terminal():
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 90, 0, 0))
    return mine, theirs


def type_in(mine, seen, keys, is_typed=lambda _: True):
    waiting, n_asked = [*keys], 0
    with suppress(OSError):
        while chunk := os.read(mine, 65536):
            seen.append(chunk)
            while b"".join(seen).count(b" > ") > n_asked:
                n_asked += 1
                if is_typed(n_asked):
                    os.write(mine, f"{waiting.pop(0) if waiting else 'q'}\n".encode())


def rows_in(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def path(folder):
    return folder.parent / "anna.jsonl"


@pytest.fixture(scope="module")
def words(folder, path):
    return str(folder), "--labeller", "anna", "--file", str(path), "--turns", "12"


@pytest.fixture(scope="module")
def first_and_kept(words, path):
    """One turn whole, with a slip, a step back and a look at the levels; one half; then q. And what
    it has kept, before other sessions add to it.
    """
    keys = ("?", "seven", "2.25", "1", "b", *WHOLE, "3", "q")
    return at_terminal(*words, keys=keys), rows_in(path)


@pytest.fixture(scope="module")
def first(first_and_kept):
    return first_and_kept[0]


class TestSession:
    def test_answers_are_kept_and_the_document_counts_them(self, first_and_kept):
        (code, document, _), kept = first_and_kept
        assert code == 0
        assert_valid("labelling", document)
        assert (document["n_labelled"], document["n_runs"], document["n_turns"]) == (1, 6, 36)
        whole, half = kept
        assert whole["scores"] == {"form": 2.5, "substance": 2, "purity": 3.5}
        assert len(whole["events"]) == 5
        assert whole["reasons"] == {"why": "it asks"}
        assert half["scores"] == {"form": 3}

    def test_the_dialogue_is_shown_and_neither_model_nor_judge(self, first, path, folder):
        _, _, seen = first
        label = rows_in(path)[0]
        assert " ".join(label["reply"].split())[:30] in " ".join(seen.split())
        for secret in (MIXED, "mixture", "emulator", label["run_id"]):
            assert secret not in seen
        shown = rows_in(path)[:2]
        said = [one["text"] for row in shown for one in row["history"]]
        said += [row[key] for row in shown for key in ("prompt", "reply")]
        # A student may speak of one.
        assert seen.count("judge") <= sum(text.count("judge") for text in said)
        assert "3: ends with exactly one open question" in " ".join(seen.split())
        assert seen.count("in steps of 0.5, please") == 2
        entry = curated(folder)[label["run_id"]]["turns"][label["turn"]]
        assert (label["prompt"], label["reply"]) == (entry["student"], entry["question"])
        assert label["author"] == MIXED

    def test_it_goes_on_where_it_was_left(self, first, words, path):
        _, document, seen = at_terminal(*words, keys=WHOLE[1:])
        assert re.search(r"1 of \d+ turns done", seen)
        assert document["n_labelled"] == 2
        assert rows_in(path)[1]["scores"] == {"form": 3, "substance": 2, "purity": 3.5}

    def test_two_people_may_write_one_file_at_once(self, words, folder):
        file = folder.parent / "both.jsonl"

        def asked(who):
            return words[0], "--labeller", who, "--file", str(file), *words[5:]

        def ben():
            at_terminal(*asked("ben"), keys=("3",))

        begun_at_terminal(*asked("anna"), keys=("2", "1"), meanwhile=ben)
        assert {row["labeller"]: row["scores"] for row in rows_in(file)} == {
            "ben": {"form": 3},
            "anna": {"form": 2, "substance": 1},
        }

    def test_a_kill_loses_no_answer(self, first, words, path):
        before = rows_in(path)
        code, _, _ = begun_at_terminal(*words, keys=("s", "1.5", "0.5"), kill_after=3)
        assert code == -9
        (added,) = rows_in(path)[len(before) :]
        assert added["scores"] == {"form": 1.5, "substance": 0.5}

    @pytest.mark.parametrize(
        ("number", "code"), [(signal.SIGINT, 0), (signal.SIGHUP, 129), (signal.SIGTERM, 143)]
    )
    def test_a_signal_stops_it_as_q_does(self, words, folder, number, code):
        """Ctrl-C, a closed terminal, and a kill: the answers are kept, and the document says so."""
        file = folder.parent / f"{number.name}.jsonl"
        asked = (words[0], "--labeller", "anna", "--file", str(file), *words[5:])
        found, document, _ = begun_at_terminal(*asked, keys=("1.5", "2"), kill_after=2, by=number)
        assert (found, document["kind"], document["n_labelled"]) == (code, "labelling", 0)
        (row,) = rows_in(file)
        assert row["scores"] == {"form": 1.5, "substance": 2}

    def test_a_terminal_that_goes_without_a_word_ends_it(self, words, folder):
        file = folder.parent / "gone.jsonl"
        asked = (words[0], "--labeller", "anna", "--file", str(file), *words[5:])
        found, document, _ = begun_at_terminal(*asked, keys=("1.5",), hang_up=True)
        assert (found, document["kind"]) == (0, "labelling")
        assert [row["scores"] for row in rows_in(file)] == [{"form": 1.5}]

    def test_another_person_gets_the_same_turns(self, first, words, path, folder):
        other = folder.parent / "ben.jsonl"
        at_terminal(words[0], "--labeller", "ben", "--file", str(other), *words[5:], keys=WHOLE)
        (ben,) = rows_in(other)
        anna = rows_in(path)[0]
        assert (ben["run_id"], ben["turn"]) == (anna["run_id"], anna["turn"])
        assert ben["probability"] == anna["probability"]

    def test_other_turns_into_the_same_file_are_refused(self, first, words):
        code, document, _ = at_terminal(*words[:5], "--turns", "20")
        assert code == 2
        assert "other turns than are drawn now" in document["error"]["message"]
        assert "the same runs, --turns and --seed as then" in document["error"]["hint"]

    def test_labels_calibrate_as_they_are(self, first, path):
        found = run("calibrate", "--labels", str(path), "--offline", "-q").document
        assert found["labels"]["n_drawn"] == found["labels"]["n_turns"] > 0

    def test_the_words_of_a_turn_are_found_in_its_run(self, first, path, folder):
        """So the judge sees what it saw in the run, and says the same."""
        bare = folder.parent / "bare.jsonl"
        kept = ("labeller", "run_id", "turn", "scores")
        rows = [{name: row[name] for name in kept} for row in rows_in(path)]
        bare.write_text("".join(json.dumps(row) + "\n" for row in rows))
        words = ("calibrate", "--labels", str(bare), "--offline", "-q")
        missing = run(*words).document["error"]["message"]
        assert "say with --runs where" in missing
        docs = curated(folder)
        for turn in run(*words, "--runs", str(folder)).document["turns"]:
            entry = docs[turn["run_id"]]["turns"][turn["turn"]]
            assert turn["judge"]["form"] == entry["form"]
            assert turn["author"] == MIXED


class TestDrawing:
    def drawn(self, folder, *words):
        """What is drawn by several seeds, by answering once and skipping on. Runs have new ids each
        time, by which chance goes, so that one seed may draw nothing of a kind.
        """
        found = []
        for seed in range(4):
            path = folder.parent / f"drawn-{seed}.jsonl"
            path.unlink(missing_ok=True)
            place = ("--labeller", "x", "--file", str(path), "--seed", str(seed))
            at_terminal(str(folder), *place, *words, keys=["1", "s"] * 40)
            found += rows_in(path) if path.exists() else []
        return found

    def test_turns_near_a_threshold_are_drawn_three_times_as_often(self, folder):
        docs = curated(folder)
        found = self.drawn(folder, "--turns", "9")
        probability = {True: set(), False: set()}
        for row in found:
            turn = docs[row["run_id"]]["turns"][row["turn"]]
            bounds = docs[row["run_id"]]["thresholds"]
            near = [bounds["compliance"], bounds["half_life"]]
            is_near = any(abs(turn["score"] - bound) <= 1 for bound in near)
            probability[is_near].add(round(row["probability"], 9))
        assert all(0 < p <= 1 for some in probability.values() for p in some)
        (likely,), (rest,) = probability[True], probability[False]
        assert likely == pytest.approx(3 * rest)

    def test_probabilities_come_to_the_number_that_was_asked_for(self, folder):
        n_near = n_far = 0
        for doc in curated(folder).values():
            for turn in doc["turns"]:
                bounds = doc["thresholds"]["compliance"], doc["thresholds"]["half_life"]
                is_near = any(abs(turn["score"] - bound) <= 1 for bound in bounds)
                n_near, n_far = n_near + is_near, n_far + (not is_near)
        rest = min(row["probability"] for row in self.drawn(folder, "--turns", "9"))
        assert n_near * min(1, 3 * rest) + n_far * rest == pytest.approx(9, abs=1e-6)

    def test_turns_on_which_jurors_differ_are_drawn_twice_as_often(self, tmp_path):
        jury = ("--judge-model", "emulator.judge-v1:0")
        other = ("--judge-model", "emulator.judge-quirk-8-v1:0")
        words = ("--scenarios", *SCENARIOS[:2], "--turns", "6", "--seed", "7", "-q", *jury, *other)
        assert sweep("--models", MIXED, *words, folder=tmp_path / "runs").exit_code == 0
        docs = curated(tmp_path / "runs")
        runs = read_runs([str(tmp_path / "runs")], str, Mistakes()).runs
        factors = {True: set(), False: set()}
        for one in (one for seed in range(300) for one in sample_turns(runs, 2, seed=seed)):
            turn = docs[one.run.run_id]["turns"][one.turn.turn]
            bounds = docs[one.run.run_id]["thresholds"]
            near = [bounds["compliance"], bounds["half_life"]]
            is_near = any(abs(turn["score"] - bound) <= 1 for bound in near)
            is_disputed = turn["votes"]["between_jurors"]["overall_score"] >= 1
            factors[is_disputed].add(round(one.probability / (3 if is_near else 1), 9))
        (disputed,), (agreed,) = factors[True], factors[False]
        assert disputed == pytest.approx(2 * agreed)

    def test_whole_dialogues_have_all_their_turns(self, folder):
        found = self.drawn(folder, "--turns", "18", "--whole-dialogues")
        by_run = {}
        for row in found:
            by_run.setdefault(row["run_id"], set()).add(row["turn"])
        assert all(turns == {*range(6)} for turns in by_run.values())
        assert {row["probability"] for row in found} == {0.5}


def test_without_a_terminal_it_says_what_to_do(folder):
    found = run("label", str(folder), "--file", "x.csv")
    assert found.exit_code == 2
    message = found.document["error"]["message"]
    for words in ("a terminal on stdin", "docker run -it", "--labeller", "end with .csv"):
        assert words in message


def test_a_file_that_cannot_be_written_is_told_before_the_first_question(folder, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for place in (tmp_path / "nowhere" / "labels.jsonl", pipe):
        code, document, _ = at_terminal(str(folder), "--labeller", "anna", "--file", str(place))
        assert code == 2
        assert f"cannot be saved in {place}" in document["error"]["message"]
    assert pipe.is_fifo()
