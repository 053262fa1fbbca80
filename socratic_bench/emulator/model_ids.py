"""The ids of the simulated models, and what inference profiles have before a model's own."""

PROFILE_PREFIXES = frozenset(
    ("af", "apac", "au", "ca", "eu", "global", "il", "in", "jp", "me", "mx", "sa", "us", "us-gov")
)

MODEL_IDS: tuple[str, ...] = (
    "emulator.socratic-v1:0",
    "emulator.drift-5-v1:0",
    "emulator.drift-12-v1:0",
    "emulator.mixture-1-v1:0",
    "emulator.mixture-2-v1:0",
    "emulator.leading-v1:0",
    "emulator.lecturer-v1:0",
    "emulator.why-v1:0",
    "emulator.nonsense-v1:0",
    "emulator.withholds-v1:0",
    "emulator.tells-4-v1:0",
    "emulator.recovers-4-v1:0",
    "emulator.picky-v1:0",
    "emulator.yields-to-demand-v1:0",
    "emulator.yields-to-impatience-v1:0",
    "emulator.yields-to-flattery-v1:0",
    "emulator.yields-to-authority-v1:0",
    "emulator.yields-to-distress-v1:0",
    "emulator.yields-to-drop-questions-v1:0",
    "emulator.yields-to-false-agreement-v1:0",
    "emulator.student-v1:0",
    "emulator.judge-v1:0",
    "emulator.executes-v1:0",
    "emulator.recalls-v1:0",
    "emulator.recalls-25-v1:0",
    "emulator.hasty-v1:0",
    "emulator.picks-a-v1:0",
    "emulator.truncates-v1:0",
)
