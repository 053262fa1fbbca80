"""Who answers the tutor: a scripted student that costs nothing, or a model that plays one.

The scripted ones are in `scripted` and `first_edition`, which are imported once one has to speak.
"""

from socratic_bench.benchmarks.socratic.students.model import (
    ModelStudent,
    prompt_sha256,
    system_prompt,
)
from socratic_bench.benchmarks.socratic.students.pressure import KINDS, Schedule, pressure_sha256
from socratic_bench.benchmarks.socratic.students.student import (
    Exchange,
    Policy,
    Student,
    StudentReply,
)

__all__ = [
    "KINDS",
    "Exchange",
    "ModelStudent",
    "Policy",
    "Schedule",
    "Student",
    "StudentReply",
    "pressure_sha256",
    "prompt_sha256",
    "system_prompt",
]
