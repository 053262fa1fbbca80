"""The turn loop: the student speaks, the tutor replies, until the dialogue ends."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import asdict, replace

from socratic_bench.benchmarks.socratic.scenarios import Scenario
from socratic_bench.benchmarks.socratic.settings import Settings
from socratic_bench.benchmarks.socratic.students import (
    Exchange,
    ModelStudent,
    Schedule,
    ScriptedStudent,
    Student,
    StudentReply,
)
from socratic_bench.benchmarks.socratic.transcript import (
    NO_TRANSCRIPT,
    RecordedTurn,
    Transcript,
)
from socratic_bench.benchmarks.socratic.turn import STUDENT, TUTOR, SocraticTurn
from socratic_bench.errors import ModelError
from socratic_bench.ports import Episode, EpisodeContext, EpisodeResult, JudgeInput, Length
from socratic_bench.settings import MAX_TURNS
from socratic_bench.types import (
    MALFORMED_STOPS,
    CallKey,
    Completion,
    EndReason,
    Message,
    Reasoning,
    Request,
    Role,
    Turn,
    Unscored,
)

# Exchanges before the reply that the judge sees: enough to know what is answered, and it keeps the
# judge's cost from growing with the square of the dialogue's length.
CONTEXT_EXCHANGES = 3

# A replayed reply was made by no call of this run; no document shows this date.
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

# Stop reasons that end the dialogue after the turn.
ENDINGS: dict[str, EndReason] = {
    "content_filtered": "content_filtered",
    "guardrail_intervened": "guardrail",
    "model_context_window_exceeded": "context_window",
}
# What is said then was not said by the tutor, so it is not scored.
NOT_THE_TUTORS_WORDS = ("content_filtered", "guardrail")
MALFORMED = "malformed_output"


class Said(Struct, frozen=True):
    """What the tutor is answering, what moved the student to say it, and the call that made it."""

    text: str
    policy: str = "opening"
    call: Completion | None = None
    pressure: str | None = None
    set_aside: tuple[Completion, ...] = ()


class SocraticEpisode(Episode, frozen=True, kw_only=True):
    """One dialogue, prepared. See `socratic_bench.ports.Episode`."""

    settings: Settings
    scenario: Scenario
    tutor_prompt: str
    transcript: Transcript = NO_TRANSCRIPT

    def play(self, context: EpisodeContext) -> EpisodeResult:
        exchanges = self._replay(context)
        last = len(exchanges) + self.settings.turns
        student = self._student(context)
        said = self._first_words()
        try:
            if said is None:
                answer = student.reply(exchanges)
                if episode_result := _student_ends(answer):
                    return episode_result
                said = _said(answer)
            while True:
                *set_aside, reply = self._ask(context, exchanges, said.text)
                ended = _ending(reply)
                turn = _turn(len(exchanges), said, reply, ended)
                context.publish(replace(turn, set_aside=_set_aside(said, set_aside)))
                exchanges.append(Exchange(student=said.text, tutor=reply.message.text))
                if ended or len(exchanges) == last:
                    return EpisodeResult(end_reason=ended or "max_turns")
                answer = student.reply(exchanges)
                if episode_result := _student_ends(answer):
                    return episode_result
                said = _said(answer)
        except ModelError as error:
            if error.end_reason != "context_window":
                raise
            return EpisodeResult(end_reason="context_window")

    def measured(self, turns: Sequence[Turn], index: int) -> Turn:
        """With the heuristics of the reply, and what was wrong with a model student's words."""
        # Not needed before the first reply is there.
        from socratic_bench.benchmarks.socratic.heuristics import analyse

        turn = SocraticTurn.of(turns[index])
        return replace(
            turn,
            measures=asdict(analyse(turn.reply.message.text)),
            student_flags=_student_flags(turn, turn.student, turns[:index]),
        )

    def judge_input(self, turns: Sequence[Turn], index: int) -> JudgeInput:
        """The last few exchanges, what the student just said, and the tutor's reply to it."""
        recent = turns[max(0, index - CONTEXT_EXCHANGES) : index]
        context = [
            line
            for turn in recent
            for line in ((STUDENT, turn.prompt), (TUTOR, turn.reply.message.text))
        ]
        turn = turns[index]
        return JudgeInput((*context, (STUDENT, turn.prompt)), turn.reply.message.text)

    def expected_reply(self, role: Role, length: Length) -> str:
        from socratic_bench.benchmarks.socratic.expectation import expected_reply

        return expected_reply(role, length)

    def _student(self, context: EpisodeContext) -> Student:
        schedule = schedule_of(self.settings, self.scenario, self.transcript)
        model = context.model(STUDENT)
        if model is None:
            return ScriptedStudent(self.scenario, schedule.seed, schedule=schedule)
        return ModelStudent(self.scenario, model, schedule=schedule)

    def _replay(self, context: EpisodeContext) -> list[Exchange]:
        """Publish what was said before, as it was said; nobody is called for it."""
        for index, turn in enumerate(self.transcript.turns):
            context.publish(_replayed(index, turn))
        return [Exchange(student=turn.student, tutor=turn.tutor) for turn in self.transcript.turns]

    def _first_words(self) -> Said | None:
        """What the tutor under test answers first; `None` if the student has still to speak."""
        if not self.transcript.turns:
            return Said(self.opening.prompt)
        handover = self.transcript.handover
        return Said(handover.student, "replayed", pressure=handover.pressure) if handover else None

    def _ask(
        self, context: EpisodeContext, exchanges: Sequence[Exchange], prompt: str
    ) -> list[Completion]:
        """The tutor's reply, the last one; an empty one is asked for once more."""
        messages = [message for exchange in exchanges for message in _spoken(exchange)]
        request = Request(
            system=self.tutor_prompt,
            messages=(*messages, Message.user(prompt)),
            config=self.settings.generation,
            grows=self.settings.turns > 1,
        )
        index = len(exchanges)
        replies = [context.tested.complete(request, CallKey(role=TUTOR, index=index))]
        if _is_empty(replies[0]):
            again = CallKey(role=TUTOR, index=index, repeat=1)
            replies.append(context.tested.complete(request, again))
        return replies


@lru_cache(maxsize=MAX_TURNS)
def _spoken(exchange: Exchange) -> tuple[Message, Message]:
    """As the tutor has it; every later turn of the dialogue begins with the same messages."""
    return Message.user(exchange.student), Message.assistant(exchange.tutor)


def schedule_of(settings: Settings, scenario: Scenario, transcript: Transcript) -> Schedule:
    """When the student pushes: in its own turns, as long as it is known to stay."""
    # What the record holds of the student's words was not said by this one.
    recorded = len(transcript.turns) + (transcript.handover is not None)
    n_turns = len(transcript.turns) + settings.turns
    if scenario.closes_after is not None and not settings.student_model:
        n_turns = min(n_turns, scenario.closes_after)
    return Schedule(
        level=settings.pressure, seed=settings.seed or 0, start=max(1, recorded), n_turns=n_turns
    )


def _is_empty(reply: Completion) -> bool:
    return reply.stop_reason not in ENDINGS and not reply.message.text.strip()


def _ending(reply: Completion) -> EndReason | None:
    if reply.stop_reason in ENDINGS:
        return ENDINGS[reply.stop_reason]
    return "empty_reply" if _is_empty(reply) else None


def _turn(index: int, said: Said, reply: Completion, ended: EndReason | None) -> SocraticTurn:
    reason: str | None = None
    if ended in NOT_THE_TUTORS_WORDS or (ended and not reply.message.text.strip()):
        reason = ended
    elif reply.stop_reason in MALFORMED_STOPS:
        reason = MALFORMED
    return SocraticTurn(
        index=index,
        prompt=said.text,
        reply=reply,
        others={STUDENT: said.call} if said.call else {},
        notes={
            "student_policy": said.policy,
            "student_asked_again": bool(said.set_aside),
            "cut": reply.stop_reason == "max_tokens",
            "flaw": _flaw(reply),
        },
        unscorable=_unjudged(reason, reply) if reason else None,
        pressure=said.pressure,
    )


def _unjudged(reason: str, reply: Completion) -> Unscored:
    return Unscored(
        reason=reason, message=f"There is no reply of the tutor to judge ({reply.stop_reason})."
    )


def _set_aside(said: Said, replies: Sequence[Completion]) -> tuple[tuple[Role, Completion], ...]:
    return (
        *((STUDENT, call) for call in said.set_aside),
        *((TUTOR, reply) for reply in replies),
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


def _replayed(index: int, turn: RecordedTurn) -> SocraticTurn:
    reply = Completion(
        message=Message.assistant(turn.tutor),
        stop_reason="replayed",
        usage=None,
        latency_ms=0.0,
        service_latency_ms=None,
        attempts=(),
        request_id=None,
        finished_at=LONG_AGO,
    )
    return SocraticTurn(
        index=index,
        prompt=turn.student,
        reply=reply,
        notes={
            "student_policy": "replayed",
            "student_asked_again": False,
            "cut": False,
            "flaw": None,
        },
        pressure=turn.pressure,
        replayed=True,
    )


def _said(answer: StudentReply) -> Said:
    return Said(
        text=answer.text,
        policy=answer.policy,
        call=answer.completion,
        pressure=answer.pressure,
        set_aside=answer.discarded,
    )


def _student_flags(
    turn: SocraticTurn, call: Completion | None, before: Sequence[Turn]
) -> tuple[str, ...] | None:
    if call is None:
        return None
    from socratic_bench.benchmarks.socratic.students.fidelity import Utterance, flags

    stop_reason = call.stop_reason
    said = Utterance(
        text=turn.prompt,
        closed=False,
        cut=stop_reason == "max_tokens",
        malformed=stop_reason in MALFORMED_STOPS,
        exchanges=[Exchange(student=one.prompt, tutor=one.reply.message.text) for one in before],
        pressure=turn.pressure,
    )
    return flags(said)


def _student_ends(said: StudentReply) -> EpisodeResult | None:
    end_reason: EndReason | None = None
    if said.completion and said.completion.stop_reason in ENDINGS:
        end_reason = ENDINGS[said.completion.stop_reason]
    elif said.closed:
        end_reason = "student_closed"
    if end_reason:
        return EpisodeResult(
            end_reason=end_reason, closing=said.text or None, closing_flags=said.flags
        )
    return None if said.text.strip() else EpisodeResult(end_reason="empty_reply")
