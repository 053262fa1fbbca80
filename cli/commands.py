"""The subcommands: word -> module, imported when it is asked for, and what help says of it."""

COMMANDS = {
    "run": (".run", "(the default) play once"),
    "resume": (".resume", "go on with a run that was cut short"),
    "sweep": (".sweep", "play many runs, over models and other settings"),
    "compare": (".compare", "set stored runs of models side by side, pair by pair"),
    "doctor": (".doctor", "look at all that a run needs: credentials, stores, every model"),
    "validate": (".validate", "check files of yours: plans, prompts, prices, and others"),
    "scenarios": (".socratic.scenarios", "list the built-in scenarios"),
    "models": (".models", "list the models that may be tested, what they take and cost"),
    "schema": (".schema", "print the JSON Schema of a document"),
    "emulator": (".emulator", "serve the embedded Bedrock endpoint"),
    "completion": (".completion", "print a script by which a shell completes what you type"),
    "help": (".run", "the same as --help, also of a command: help resume"),
}
