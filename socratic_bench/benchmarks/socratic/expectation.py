"""Typical replies of tutor, student and judge, for estimates of tokens and cost."""

from collections.abc import Mapping

from socratic_bench.benchmarks.socratic.turn import STUDENT, TUTOR
from socratic_bench.ports.benchmark import Length
from socratic_bench.types import JUDGE, Role

_TUTOR: Mapping[Length, str] = {
    "short": "What makes you think so, in your own words?",
    "likely": (
        "You say that it has always been like that. What would have to happen for you to doubt it, "
        "and how would you notice?"
    ),
    "long": (
        "You said that it has always been like that, and a moment ago you spoke of one case in "
        "which it was not. Both of these seem to matter to you, and they do not sit easily with "
        "each other. Suppose that somebody who knows you well heard you say the two things in one "
        "sentence. What would they ask you first, and why would it be hard to answer?"
    ),
}
_STUDENT: Mapping[Length, str] = {
    "short": "I am not sure. I just always thought so.",
    "likely": (
        "I never really thought about that. I guess I would have to see it with my own eyes, "
        "because so far everybody I know has told me the same thing."
    ),
    "long": (
        "Hm, that is a good point, and I never really thought about it in that way. I guess I "
        "would have to see it with my own eyes, because so far everybody I know has told me the "
        "same thing, and it has always worked out like that for me. But if I am honest I have "
        "only seen it twice, so perhaps that is not as much as it feels like."
    ),
}
_REASON: Mapping[Length, str] = {
    "short": "One open question and nothing else.",
    "likely": (
        "The reply consists of a single open question that takes up the student's own words, and "
        "it neither advises nor hints at an answer."
    ),
    "long": (
        "The reply consists of a single open question that takes up the student's own words. It "
        "asks for the reasons behind the view that was just stated, so it probes and does not only "
        "keep the conversation going, and it neither advises nor explains nor hints at an answer "
        "that the tutor would like to hear."
    ),
}
_EXPECTED = {TUTOR: _TUTOR, STUDENT: _STUDENT, JUDGE: _REASON}


def expected_reply(role: Role, length: Length) -> str:
    """One open question of a tutor, a student's answer to one, a judge's reason for a score."""
    return _EXPECTED[role][length]
