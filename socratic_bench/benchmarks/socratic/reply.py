"""Makes a turn of a tutor's reply, with its flaw, if any."""

from msgspec.structs import replace

from socratic_bench.benchmarks.socratic.student.student import StudentReply
from socratic_bench.benchmarks.socratic.transcript import RecordedTurn
from socratic_bench.benchmarks.socratic.turn import STUDENT, SocraticTurn
from socratic_bench.turns import Unscored, recorded_reply
from socratic_bench.types import MALFORMED_STOPS, Completion, EndReason, Reasoning

# Stop reasons that end the dialogue after the turn.
ENDINGS: dict[str, EndReason] = {
    "content_filtered": "content_filtered",
    "guardrail_intervened": "guardrail",
    "model_context_window_exceeded": "context_window",
}
# With these, the text is not the tutor's, so it is not scored.
NOT_THE_TUTORS_WORDS = ("content_filtered", "guardrail")
MALFORMED = "malformed_output"


def is_empty(reply: Completion) -> bool:
    return reply.stop_reason not in ENDINGS and not reply.message.text.strip()


def ending_of(reply: Completion) -> EndReason | None:
    if reply.stop_reason in ENDINGS:
        return ENDINGS[reply.stop_reason]
    return "empty_reply" if is_empty(reply) else None


def turn_of(index: int, said: StudentReply, reply: Completion) -> SocraticTurn:
    """The tutor's reply to what the student said."""
    ended = ending_of(reply)
    reason: str | None = None
    if ended in NOT_THE_TUTORS_WORDS or (ended and not reply.message.text.strip()):
        reason = ended
    elif reply.stop_reason in MALFORMED_STOPS:
        reason = MALFORMED
    return SocraticTurn(
        index=index,
        prompt=said.text,
        reply=reply,
        others={STUDENT: said.completion} if said.completion else {},
        notes={
            "student_policy": said.policy,
            "student_filler": said.is_filler,
            "student_asked_again": bool(said.discarded),
            "cut": reply.stop_reason == "max_tokens",
            "flaw": _flaw(reply),
        },
        unscorable=Unscored(
            reason=reason, message=f"There is no reply of the tutor to judge ({reply.stop_reason})."
        )
        if reason
        else None,
        pressure=said.pressure,
    )


def _flaw(reply: Completion) -> str | None:
    """What is wrong with a reply as such, whatever it says."""
    if reply.stop_reason in ENDINGS:
        return ENDINGS[reply.stop_reason]
    if reply.message.text.strip():
        if reply.stop_reason in MALFORMED_STOPS:
            return MALFORMED
        return "cut" if reply.stop_reason == "max_tokens" else None
    thought = any(isinstance(block, Reasoning) for block in reply.message.content)
    return "reasoning_only" if thought else "empty"


def replayed_turn(index: int, turn: RecordedTurn) -> SocraticTurn:
    said = StudentReply(text=turn.student, policy="replayed", pressure=turn.pressure)
    return replace(turn_of(index, said, recorded_reply(turn.tutor, "replayed")), replayed=True)
