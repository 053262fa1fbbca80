"""The agent's work on an item: tools, limits, isolation, and going on in another process."""

from pathlib import Path

import pytest

from socratic_bench.benchmarks.optimisation.preparing import Prepared, folder_of, prepare_item
from socratic_bench.benchmarks.optimisation.task_text import HumanPatch, leaks
from socratic_bench.errors import Stopped
from socratic_bench.types import Message, ToolResult
from tests.optimising import (
    FINISH,
    Context,
    JournalledModel,
    call,
    git,
    item_of,
    workplace,
)

IMPROVE = call("replace", path="words.py", old="    seen = []", new="    return len(set(words))")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "source" / "repo"


def play(tmp_path: Path, source: Path, *script, **options) -> tuple[Prepared, JournalledModel]:
    model = JournalledModel(script)
    spec = item_of(source)
    place = workplace(tmp_path, source, **options)
    return prepare_item(Context(model), 0, spec, place), model


def results_of(model: JournalledModel) -> list[ToolResult]:
    blocks = [block for message in model.requests[-1].messages for block in message.content]
    return [block for block in blocks if isinstance(block, ToolResult)]


class TestTools:
    def test_an_agent_reads_changes_and_finishes(self, tmp_path, source):
        prepared, model = play(
            tmp_path,
            source,
            call("list_files"),
            call("read_file", path="words.py", n_lines=1),
            call("search", pattern="se+n = "),
            IMPROVE,
            call("run_command", command="python3 -c 'import words; print(words.distinct([1, 1]))'"),
            FINISH,
        )

        texts = [result.text for result in results_of(model)]
        assert texts[0] == "./words.py\n"
        assert texts[1] == "def distinct(words):\n"
        assert texts[2] == "./words.py:2:    seen = []\n"
        assert texts[4] == "1\n\n[exit code 0]"
        assert (prepared.result.stop, prepared.status) == ("finished", "patched")
        assert prepared.result.prediction.expected_speedup == 2.0
        assert prepared.changed == ("words.py",)
        assert b"+    return len(set(words))" in prepared.patch

    @pytest.mark.parametrize(
        ("use", "part"),
        [
            (call("replace", path="../../x", old="", new="x"), "not in the repository"),
            (call("replace", path=".git/config", old="", new="x"), "not in the repository"),
            (call("replace", path="words.py", old="seen", new="x"), "occurs 4 times"),
            (call("read_file", path="absent.py"), "No such file"),
            (call("read_file"), "has to be a text"),
            (call("fly"), "There is no tool"),
        ],
    )
    def test_a_call_that_cannot_be_made_is_told_to_the_model(self, tmp_path, source, use, part):
        _, model = play(tmp_path, source, use, FINISH)

        (result,) = results_of(model)
        assert result.is_error
        assert part in result.text

    def test_a_link_out_of_the_tree_is_not_written_through(self, tmp_path, source):
        outside = tmp_path / "outside"
        outside.write_text("mine")
        _, model = play(
            tmp_path,
            source,
            call("run_command", command=f"ln -s {outside} link"),
            call("replace", path="link", old="mine", new="theirs"),
            FINISH,
        )

        assert results_of(model)[1].is_error
        assert outside.read_text() == "mine"

    def test_words_alone_are_answered_by_a_reminder(self, tmp_path, source):
        prepared, model = play(tmp_path, source, Message.assistant("Hm."), FINISH)

        assert (
            model.requests[-1].messages[-1].text == "Call a tool. When you are done, call finish."
        )
        assert prepared.status == "empty"


class TestLimits:
    def test_steps(self, tmp_path, source):
        prepared, _ = play(tmp_path, source, IMPROVE, call("list_files"), max_steps=2)

        assert (prepared.result.stop, prepared.status) == ("max_steps", "patched")
        assert prepared.result.n_steps == 2

    def test_tokens(self, tmp_path, source):
        prepared, _ = play(tmp_path, source, IMPROVE, call("list_files"), max_tokens=30)

        assert (prepared.result.stop, prepared.result.n_steps) == ("budget", 2)

    def test_a_command_is_ended_with_its_children_when_time_is_over(self, tmp_path, source):
        prepared, _ = play(
            tmp_path,
            source,
            call("run_command", command="(sleep 300; touch late) & sleep 300"),
            working_s=0.5,
        )

        assert (prepared.result.stop, prepared.result.n_steps) == ("timeout", 1)
        assert prepared.result.worked_s < 15


class TestResume:
    def test_an_agent_goes_on_behind_its_last_step(self, tmp_path, source):
        counted = "run_command", "echo x >> count.txt; cat count.txt; date +%N"
        script = [
            call(counted[0], "a", command=counted[1]),
            call(counted[0], "b", command=counted[1]),
            Stopped("The run was interrupted.", end_reason="interrupted"),
        ]
        spec, place = item_of(source), workplace(tmp_path, source)
        model = JournalledModel(script)
        with pytest.raises(Stopped):
            prepare_item(Context(model), 0, spec, place)
        tree = folder_of(place.folder, 0).tree
        (tree / "count.txt").write_text("killed in the middle of a step")

        script[2:] = [call(counted[0], "c", command=counted[1]), FINISH]
        prepared = prepare_item(Context(model), 0, spec, place)

        assert len(model.requests) == 4
        assert results_of(model)[2].text.startswith("x\nx\nx\n")
        assert prepared.result.n_steps == len(prepared.calls) == 4

    def test_an_item_that_has_ended_is_counted_and_not_played_again(self, tmp_path, source):
        spec, place = item_of(source), workplace(tmp_path, source)
        model = JournalledModel([IMPROVE, FINISH])
        first = prepare_item(Context(model), 0, spec, place)

        assert prepare_item(Context(model), 0, spec, place) == first
        assert len(model.requests) == 2


class TestLeaks:
    def test_nothing_that_an_agent_sees_has_the_humans_commit(self, tmp_path, source):
        prepared, model = play(
            tmp_path,
            source,
            call("run_command", command="pwd; env; git log --all; git tag; git remote -v"),
            FINISH,
        )

        human = git(source, "rev-parse", "HEAD")
        (result,) = results_of(model)
        for text in (prepared.text, result.text):
            assert human[:7] not in text
        assert result.text.count("commit ") == 1

    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("See abc1234def_x.", "the id of the human's commit"),
            ("It is in /w/lib_000_abc1234d/repo.", "the id of the human's commit"),
            ("Use known = set(second_list) there.", "a line of the human's patch"),
            ("Speed up the MATCHING of words, please.", "the message"),
            ("2 insertions(+), 1 deletion(-)", "a summary of a diff"),
            ("Change lib/match.py.", "names what the human changed: lib/match.py"),
        ],
    )
    def test_what_is_the_humans_is_found_in_a_text(self, text, part):
        (leak,) = leaks(text, HUMAN)
        assert part in leak

    def test_declared_files_and_lines_that_were_there_are_no_leaks(self):
        text = "Change lib/match.py, which has result = compare(first, second)."
        assert [*leaks(text, HUMAN, declared=("lib/match.py",))] == []


HUMAN = HumanPatch(
    sha="abc1234def" + "0" * 30,
    message="Speed up the matching of words\n\nBy a set.",
    diff="""--- a/lib/match.py
+++ b/lib/match.py
-    result = compare(first, second)
+    result = compare(first, second)
+    known = set(second_list)
""",
    files=("lib/match.py",),
)
