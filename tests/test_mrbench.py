"""`calibrate --mrbench`: published annotations become labels, and a judge is compared with them."""

import json
from math import ceil
from statistics import fmean

import pytest

from socratic_bench.studies.calibrate.labels import read_annotations
from tests.command import assert_valid, run

YES, SOME, NO = "Yes", "To some extent", "No"
HISTORY = (
    "Tutor: What is 3 + 4?\xa0\n Student: It is 8.\n Tutor: Is it? \n Student: I think so: 3 + 5."
)
SOLVED = {
    "Mistake_Identification": YES,
    "Mistake_Location": SOME,
    "Revealing_of_the_Answer": NO,
    "Providing_Guidance": "YES",
    "Actionability": "yes",
    "humanlikeness": YES,
    "Coherence": "to some extent",
    "Tutor_Tone": "Encouraging",
}
TOLD = {
    **SOLVED,
    "Mistake_Location": NO,
    "Revealing_of_the_Answer": "Yes (and the revealed answer is correct)",
    "Providing_Guidance": SOME,
    "Actionability": NO,
    "Tutor_Tone": "neutral",
}
WRONG = {**TOLD, "Revealing_of_the_Answer": "Yes (but the revealed answer is incorrect)"}
REPLIES = {
    "Asking": ("Nearly. What makes you add five?", SOLVED),
    "Telling": ("You should simply add four. It is 7.", TOLD),
    "Mistaken": ("No, it is 9.", WRONG),
}
BEA_KEYS = ("Mistake_Identification", "Mistake_Location", "Providing_Guidance", "Actionability")


def published(n=4, key="anno_llm_responses", kept=tuple(SOLVED)):
    return [
        {
            "conversation_id": f"c-{number}",
            "conversation_history": HISTORY,
            "Data": "own",
            key: {
                author: {
                    "response": f"{reply} ({number})" if number else reply,
                    "annotation": {name: annotation[name] for name in kept},
                }
                for author, (reply, annotation) in REPLIES.items()
            },
        }
        for number in range(n)
    ]


def written(path, conversations):
    path.write_text(json.dumps(conversations))
    return str(path)


def calibrated(path, *words):
    return run("calibrate", "--mrbench", path, "--offline", "-q", *words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mrbench")


@pytest.fixture(scope="module")
def labels(folder):
    labels, n_repeated = read_annotations([written(folder / "mrbench.json", published())])
    assert n_repeated == 0
    return labels


def test_each_reply_becomes_a_label(labels):
    assert len(labels) == 12
    assert {label.dialogue for label in labels} == {"c-0", "c-1", "c-2", "c-3"}
    assert {label.author for label in labels} == {*REPLIES}
    first = labels[0]
    assert [(line.role, line.text) for line in first.history] == [
        ("assistant", "What is 3 + 4?"),
        ("user", "It is 8."),
        ("assistant", "Is it?"),
    ]
    assert (first.prompt, first.reply) == ("I think so: 3 + 5.", REPLIES["Asking"][0])
    assert first.scores == {
        "mistake_identification": 2,
        "mistake_location": 1,
        "revealing_of_the_answer": 2,
        "providing_guidance": 2,
        "actionability": 2,
        "human_likeness": 2,
        "coherence": 1,
        "tutor_tone": 2,
    }


def test_what_is_revealed_is_an_event_too(labels):
    by_author = {label.author: label for label in labels}
    scores = {who: label.scores["revealing_of_the_answer"] for who, label in by_author.items()}
    assert scores == {"Asking": 2, "Telling": 0, "Mistaken": 1}
    events = {who: label.events["reveals_answer"] for who, label in by_author.items()}
    assert events == {"Asking": False, "Telling": True, "Mistaken": True}


def test_of_a_reply_that_is_labelled_twice_the_first_label_counts(folder):
    """In the second edition a conversation stands twice, with some of its replies the same."""
    conversations = published(2)
    again = json.loads(json.dumps(conversations[0]))
    again["anno_llm_responses"]["Asking"]["annotation"]["Coherence"] = "No"
    again["anno_llm_responses"]["Telling"]["response"] = "Another reply."
    path = written(folder / "twice.json", [*conversations, again])
    outcome = calibrated(path)
    document = outcome.document
    assert outcome.exit_code == 0
    assert_valid("calibration", document)
    assert (document["labels"]["n"], document["labels"]["n_dialogues"]) == (7, 2)
    notice = "2 replies are labelled twice in the files of MRBench: the first label counts."
    assert notice in document["notices"]
    (asking,) = (
        turn
        for turn in document["turns"]
        if (turn["author"], turn["dialogue"]) == ("Asking", "c-0")
    )
    assert asking["label"]["coherence"] == 1


def test_the_rubric_is_that_of_mrbench_unless_another_is_named(folder):
    path = written(folder / "rubric.json", published(1))
    assert calibrated(path).document["judge"]["rubric"] == "mrbench-8"
    found = calibrated(path, "--rubric", "socratic-disposition-2")
    assert found.exit_code == 2


def f1(pairs):
    """The mean over classes, as the shared task has it."""
    found = []
    for one in sorted({value for pair in pairs for value in pair}):
        hits = sum(judge == label == one for judge, label in pairs)
        said = sum(judge == one for judge, _ in pairs)
        true = sum(label == one for _, label in pairs)
        precision, recall = hits / said if said else 0, hits / true if true else 0
        found.append(2 * precision * recall / (precision + recall) if hits else 0)
    return fmean(found)


def test_the_shared_tasks_metric_stands_beside_its_best(folder):
    path = written(folder / "bea.json", published(key="tutor_responses", kept=BEA_KEYS))
    document = calibrated(path).document
    assert document["n_judged"] == 12
    assert [*document["dimensions"]] == [name.lower() for name in BEA_KEYS]
    best = {
        name: one["reference"] and one["reference"]["macro_f1"]
        for name, one in document["dimensions"].items()
    }
    assert best == {
        "mistake_identification": 0.718,
        "mistake_location": None,
        "providing_guidance": 0.583,
        "actionability": None,
    }
    for name, one in document["dimensions"].items():
        pairs = [(turn["judge"][name], turn["label"][name]) for turn in document["turns"]]
        assert one["macro_f1"]["value"] == pytest.approx(f1(pairs), abs=1e-6)


def test_means_of_a_jury_are_no_classes_of_their_own(folder):
    """One juror says a label more than the other: the mean is between two of the three labels."""
    path = written(folder / "jury.json", published(key="tutor_responses", kept=BEA_KEYS))
    jury = ("emulator.judge-v1:0", "emulator.judge-bias-10-v1:0")
    words = [word for juror in jury for word in ("--judge-model", juror)]
    document = calibrated(path, *words).document
    assert any(turn["judge"]["actionability"] % 1 for turn in document["turns"])
    for name, one in document["dimensions"].items():
        pairs = [(turn["judge"][name], turn["label"][name]) for turn in document["turns"]]
        three = [(ceil(judge - 0.5), label) for judge, label in pairs]
        assert {judge for judge, _ in three} <= {0, 1, 2}
        assert one["macro_f1"]["value"] == pytest.approx(f1(three), abs=1e-6)


def test_a_conversation_whose_id_is_0_is_one_of_its_own(folder):
    ids = (1, 0, None)
    rows = [{**row, "conversation_id": id_} for row, id_ in zip(published(3), ids, strict=True)]
    labels, _ = read_annotations([written(folder / "zero.json", rows)])
    assert {label.dialogue for label in labels} == {"1", "0", "2"}


def test_mistakes_are_told_by_file_conversation_and_reply(folder):
    source = folder / "wrong.json"
    wrong = published(n=3)
    wrong[0]["anno_llm_responses"]["Asking"]["annotation"]["Actionability"] = "perhaps"
    del wrong[1]["conversation_history"]
    wrong[2]["anno_llm_responses"]["Telling"].pop("response")
    source.write_text(json.dumps(wrong))
    half = folder / "half.json"
    half.write_text(json.dumps([{**wrong[0], "conversation_id": "\ud800"}]))
    sources = (str(source), str(folder / "none.json"), str(half))
    found = run("calibrate", "--mrbench", *sources, "--offline", "-q")
    message = found.document["error"]["message"]
    assert found.exit_code == 2
    for words in (
        "conversation 0, Asking: Actionability is 'perhaps'",
        "conversation 1: it needs conversation_history",
        "conversation 2, Telling: it needs response",
        "none.json cannot be read",
        "half.json is not valid JSON (no low surrogate in string",
    ):
        assert words in message, message
