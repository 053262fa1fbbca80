"""Inspect: a task whose solver plays the dialogue and whose scorer judges every reply at once."""

import asyncio
import tempfile

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, get_model
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import solver
from words import (
    JUDGE,
    OPENING,
    STUDENT,
    STUDENT_SYSTEM,
    TURNS,
    TUTOR,
    TUTOR_SYSTEM,
    question,
    report,
)

REGION = {"region_name": "us-east-1"}


@solver
def dialogue():
    async def solve(state, generate):
        student = get_model(f"bedrock/{STUDENT}", **REGION)
        heard = [ChatMessageSystem(content=STUDENT_SYSTEM), ChatMessageUser(content="Begin.")]
        heard.append(ChatMessageAssistant(content=OPENING))
        state.messages.insert(0, ChatMessageSystem(content=TUTOR_SYSTEM))
        for turn in range(TURNS):
            state = await generate(state)
            heard.append(ChatMessageUser(content=state.output.completion))
            if turn + 1 < TURNS:
                said = (await student.generate(heard)).completion
                heard.append(ChatMessageAssistant(content=said))
                state.messages.append(ChatMessageUser(content=said))
        return state

    return solve


@scorer(metrics=[mean()])
def judged():
    async def score(state, target):
        judge = get_model(f"bedrock/{JUDGE}", **REGION)
        spoken = [m.text for m in state.messages if m.role != "system"]
        pairs = zip(spoken[::2], spoken[1::2], strict=True)
        answers = await asyncio.gather(*(judge.generate(question(*pair)) for pair in pairs))
        return Score(value=len(answers), answer=str(len(spoken) // 2))

    return score


with tempfile.TemporaryDirectory() as logs:
    log = eval(
        Task(dataset=[Sample(input=OPENING)], solver=dialogue(), scorer=judged()),
        model=f"bedrock/{TUTOR}",
        model_args=REGION,
        log_dir=logs,
        display="none",
    )[0]
    assert log.status == "success", log.error
    score = log.samples[0].scores["judged"]
report(int(score.answer), int(score.value))
