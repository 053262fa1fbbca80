"""The subcommands: word -> module, imported when it is asked for, and what help says of it."""

COMMANDS = {
    "run": (".run", "run one dialogue or data set (the default command)"),
    "sweep": (".sweep", "run many: models x scenarios x other settings x repeats"),
    "list": (".list", "list stored runs and sweeps: status, models, score, cost"),
    "compare": (".compare", "compare models across stored runs (paired differences)"),
    "report": (".report", "write an HTML, Markdown or CSV report of stored runs"),
    "export": (".export", "write stored runs for inspect_ai, MLflow or as tables"),
    "show": (".show", "print one stored run: scores, events, transcript"),
    "resume": (".resume", "continue an interrupted run"),
    "doctor": (".doctor", "preflight: check credentials, storage, model access"),
    "init": (".init", "write a commented config file"),
    "judge": (".judge", "score stored runs again with another judge or rubric"),
    "label": (".label", "score turns of stored runs yourself (human labels)"),
    "calibrate": (".calibrate", "measure judge-human agreement on labelled replies"),
    "dashboard": (".dashboard", "serve a page to set up, watch and compare sweeps"),
    "models": (".models", "list models with their features and prices"),
    "scenarios": (".scenarios", "list the built-in scenarios, or check your own"),
    "validate": (".validate", "check config, prompt, price and other files"),
    "dataset": (".dataset", "verify or mutate a data set of programs"),
    "optimisation": (".optimisation", "plan, validate and measure speed-ups of repositories"),
    "schema": (".schema", "print the JSON Schema of a document"),
    "emulator": (".emulator", "serve the built-in mock of Bedrock"),
    "completion": (".completion", "print a shell's completion script"),
    "help": (".run", "print the help of a command: help sweep"),
}

# Commands of earlier versions, and what takes their place.
REPLACED = {"correct": "compare --labels FILE", "mrbench": "calibrate --mrbench FILE"}
