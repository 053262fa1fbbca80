"""DeepEval: its Bedrock model in a loop, then `evaluate` with a metric that asks the judge.

Its own simulator and G-Eval want JSON of a shape of theirs, which the emulator's models do not
give; the metric here takes any answer. A prompt is one text, so that the history is sent in it.
"""

import asyncio
import contextlib
import io

from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.models import AmazonBedrockModel
from deepeval.test_case import LLMTestCase
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


def model(name: str) -> AmazonBedrockModel:
    return AmazonBedrockModel(
        model=name, region="us-east-1", cost_per_input_token=0.0, cost_per_output_token=0.0
    )


class Socratic(BaseMetric):
    threshold = 0.0
    async_mode = True
    include_reason = False
    evaluation_model = JUDGE

    def measure(self, test_case: LLMTestCase) -> float:
        return asyncio.run(self.a_measure(test_case))

    async def a_measure(self, test_case: LLMTestCase, **_: object) -> float:
        await model(JUDGE).a_generate(question(test_case.input, test_case.actual_output))
        self.score, self.success = 1.0, True
        return self.score

    def is_successful(self) -> bool:
        return self.success

    @property
    def __name__(self) -> str:
        return "Socratic"


async def dialogue() -> list[tuple[str, str]]:
    tutor, student = model(TUTOR), model(STUDENT)
    said, pairs, history = OPENING, [], ""
    for turn in range(TURNS):
        history += f"\nStudent: {said}"
        reply, _ = await tutor.a_generate(f"{TUTOR_SYSTEM}\n{history}")
        history += f"\nTutor: {reply}"
        pairs.append((said, reply))
        if turn + 1 < TURNS:
            said, _ = await student.a_generate(f"{STUDENT_SYSTEM}\n{history}")
    return pairs


pairs = asyncio.run(dialogue())
with contextlib.redirect_stdout(io.StringIO()):
    result = evaluate(
        [LLMTestCase(input=said, actual_output=reply) for said, reply in pairs],
        metrics=[Socratic()],
        async_config=AsyncConfig(max_concurrent=20),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
    )
report(len(pairs), sum(bool(test.success) for test in result.test_results))
