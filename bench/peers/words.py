"""What all peers say in the same job. Standard library only: it runs in their environments."""

import json
import os

TURNS = int(os.environ["BENCH_TURNS"])
TUTOR, STUDENT, JUDGE = "bench.tutor-v1:0", "bench.student-v1:0", "bench.judge-v1:0"
OPENING = "I'm considering a career change but unsure where to start."
TUTOR_SYSTEM = "You are a tutor. Help the student think by asking questions; never tell."
STUDENT_SYSTEM = "You are a student who thinks that a change of career needs a new degree."


def question(said: str, reply: str) -> str:
    """What the judge is asked about one reply of the tutor."""
    return f"Score from 0 to 10 how Socratic the tutor is.\nStudent: {said}\nTutor: {reply}"


def report(replies: int, verdicts: int) -> None:
    """The last line of a job: whether all was done."""
    print(json.dumps({"replies": replies, "verdicts": verdicts}))
