"""A plain script: one client, one call after the other."""

import boto3
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

client = boto3.client("bedrock-runtime", region_name="us-east-1")


def ask(model: str, messages: list, system: str | None = None) -> str:
    more = {"system": [{"text": system}]} if system else {}
    answer = client.converse(
        modelId=model, messages=messages, inferenceConfig={"maxTokens": 1024}, **more
    )
    return answer["output"]["message"]["content"][0]["text"]


def message(role: str, text: str) -> dict:
    return {"role": role, "content": [{"text": text}]}


said, seen, heard, verdicts = OPENING, [], [message("user", "Begin.")], []
for turn in range(TURNS):
    seen.append(message("user", said))
    reply = ask(TUTOR, seen, TUTOR_SYSTEM)
    seen.append(message("assistant", reply))
    verdicts.append(ask(JUDGE, [message("user", question(said, reply))]))
    heard += [message("assistant", said), message("user", reply)]
    if turn + 1 < TURNS:
        said = ask(STUDENT, heard, STUDENT_SYSTEM)
report(len(seen) // 2, len(verdicts))
