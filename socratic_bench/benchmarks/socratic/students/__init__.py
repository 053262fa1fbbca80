"""Who answers the tutor: a scripted student that costs nothing, or a model that plays one."""

from socratic_bench.benchmarks.socratic.students.model import (
    CLOSING_TOKEN,
    ModelStudent,
    prompt_sha256,
    system_prompt,
)
from socratic_bench.benchmarks.socratic.students.scripted import ScriptedStudent
from socratic_bench.benchmarks.socratic.students.student import (
    Exchange,
    Policy,
    Student,
    StudentReply,
)

__all__ = [
    "CLOSING_TOKEN",
    "Exchange",
    "ModelStudent",
    "Policy",
    "ScriptedStudent",
    "Student",
    "StudentReply",
    "prompt_sha256",
    "system_prompt",
]
