"""The files that a sweep is given: prompts, and plans."""

import json
from pathlib import Path

import pytest

from socratic_bench.errors import UsageError
from socratic_bench.settings import MAX_TEXT_BYTES, flag_names
from socratic_bench.sweeps.prompts import MAX_PROMPTS, Prompt, read_prompts
from tests.schemas import breaches


def prompts_file(folder: Path, content: str | bytes, name: str = "prompts.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def mistakes(read, path: Path) -> list[str]:
    """What is wrong with the file, without its path, with settings called by their flags."""
    with pytest.raises(UsageError) as raised:
        read(path)
    raised.value.call_settings(flag_names(()))
    assert all(one.startswith(f"{path}: ") for one in raised.value.problems)
    return [one.removeprefix(f"{path}: ") for one in raised.value.problems]


class TestPrompts:
    def test_text_has_an_opening_a_line(self, tmp_path):
        path = prompts_file(
            tmp_path, "\ufeff# Openings\r\nWhy?\r\n\n  What #1 is {it}?  \n\t# no more\nÉ\u2028?"
        )

        assert read_prompts(path) == (
            Prompt("Why?", 2),
            Prompt("What #1 is {it}?", 4),
            Prompt("É\u2028?", 6),
        )

    def test_jsonl_has_an_object_a_line(self, tmp_path):
        lines = [{"prompt": " Why?\nHow? ", "id": "why"}, {"prompt": "# What?"}]
        assert [breaches("prompts_line", line) for line in lines] == [[], []]
        content = "\n\n".join(json.dumps(line) for line in lines)

        for name in ("prompts.jsonl", "PROMPTS.JSONL"):
            assert read_prompts(str(prompts_file(tmp_path, content, name))) == (
                Prompt(" Why?\nHow? ", 1, "why"),
                Prompt("# What?", 3),
            )

    def test_every_mistake_in_text_is_told_with_its_line(self, tmp_path):
        content = b'Why?\n{"prompt": "What?"}\n\xff\nWhy?\n' + b"x" * (MAX_TEXT_BYTES + 1)

        assert mistakes(read_prompts, prompts_file(tmp_path, content)) == [
            "line 2: it looks like JSON: name the file so that it ends with .jsonl.",
            "line 3: it is no UTF-8 text (byte 1 of the line).",
            "line 4: the prompt is that of line 1: keep one; --repeats plays each again.",
            "line 5: the prompt has more than 1000000 bytes.",
        ]

    def test_every_mistake_in_jsonl_is_told_with_its_line(self, tmp_path):
        lines = """\
{"prompt": "Why?", "id": "a"}
{"promt": "Why?", "{x}": 1}
{"prompt": 3, "id": 3}
{"prompt": " ", "id": ""}
["Why?"]
{"prompt": "Wh
{"prompt": "What?", "id": "a"}
{"prompt": "Why?"}
{"prompt": "\\ud800"}
# a comment"""

        assert mistakes(read_prompts, prompts_file(tmp_path, lines, "p.jsonl")) == [
            "line 2: 'promt' is not known; did you mean prompt?",
            "line 2: '{x}' is not known; a line has prompt, and may have id.",
            "line 2: prompt is missing.",
            "line 3: prompt must be text.",
            "line 3: id must be text.",
            "line 4: id must have 1 to 100 characters that can be printed, not blanks alone.",
            'line 5: it must be an object, such as {"prompt": "Why is it so?"}.',
            "line 6: it is no JSON (unexpected end of data, column 15).",
            "line 7: the id 'a' is that of line 1: keep one.",
            "line 8: the prompt is that of line 1: keep one; --repeats plays each again.",
            "line 9: it is no JSON (no low surrogate in string, column 13).",
            "line 10: it is no JSON (unexpected character, expected a JSON value, column 1).",
        ]

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ("\n# nothing\n", "there is no prompt in it: give one a line."),
            (
                "\n".join(map(str, range(MAX_PROMPTS + 1))),
                "it has 100001 prompts, but at most 100000 are taken.",
            ),
        ],
        ids=["none", "too many"],
    )
    def test_a_file_may_have_too_few_or_too_many(self, tmp_path, content, said):
        assert mistakes(read_prompts, prompts_file(tmp_path, content)) == [said]

    def test_a_file_that_cannot_be_read_is_a_mistake(self, tmp_path):
        assert mistakes(read_prompts, tmp_path / "none.txt") == [
            "it cannot be read: No such file or directory."
        ]
        assert mistakes(read_prompts, tmp_path) == ["it cannot be read: it is no regular file."]
