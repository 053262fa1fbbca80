"""The subcommands: word -> module, imported when it is asked for, and what help says of it."""

COMMANDS = {
    "run": (".run", "(the default) play once"),
    "resume": (".resume", "go on with a run that was cut short"),
    "show": (".show", "draw one stored run at the terminal: scores, events, transcript"),
    "sweep": (".sweep", "play many runs, over models and other settings"),
    "compare": (".compare", "set stored runs of models side by side, pair by pair"),
    "judge": (".judge", "judge stored runs again, by another judge, jury or rubric"),
    "label": (".label", "score turns of stored runs yourself, at a terminal"),
    "calibrate": (".calibrate", "hold a judge to what people say of the same replies"),
    "report": (".report", "write a report of stored runs that others can read"),
    "doctor": (".doctor", "look at all that a run needs: credentials, stores, every model"),
    "validate": (".validate", "check files of yours: plans, prompts, prices, and others"),
    "scenarios": (".scenarios", "list the built-in scenarios"),
    "dataset": (".dataset", "verify programs of a data set, or make mutations of them"),
    "models": (".models", "list the models that may be tested, what they take and cost"),
    "schema": (".schema", "print the JSON Schema of a document"),
    "emulator": (".emulator", "serve the embedded Bedrock endpoint"),
    "completion": (".completion", "print a script by which a shell completes what you type"),
    "help": (".run", "the same as --help, also of a command: help resume"),
}

# Commands of earlier versions, and what takes their place.
REPLACED = {"correct": "compare --labels FILE", "mrbench": "calibrate --mrbench FILE"}
