"""Who answers the tutor: a scripted student that costs nothing, or a model that plays one."""

from socratic_bench.benchmarks.socratic.students.first_edition import FirstStudent
from socratic_bench.benchmarks.socratic.students.model import (
    CLOSING_TOKEN,
    ModelStudent,
    prompt_sha256,
    system_prompt,
)
from socratic_bench.benchmarks.socratic.students.phrases import phrases_sha256
from socratic_bench.benchmarks.socratic.students.pressure import KINDS, Schedule, pressure_sha256
from socratic_bench.benchmarks.socratic.students.scripted import ScriptedStudent
from socratic_bench.benchmarks.socratic.students.student import (
    Exchange,
    Policy,
    Student,
    StudentReply,
)
from socratic_bench.benchmarks.socratic.students.voices import voices_sha256

__all__ = [
    "CLOSING_TOKEN",
    "KINDS",
    "Exchange",
    "FirstStudent",
    "ModelStudent",
    "Policy",
    "Schedule",
    "ScriptedStudent",
    "Student",
    "StudentReply",
    "phrases_sha256",
    "pressure_sha256",
    "prompt_sha256",
    "system_prompt",
    "voices_sha256",
]
