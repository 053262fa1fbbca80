"""The subcommands: word -> module, imported when it is asked for, and what help says of it."""

COMMANDS = {
    "run": (".run", "(the default) play once"),
    "resume": (".resume", "go on with a run that was cut short"),
    "scenarios": (".socratic.scenarios", "list the built-in scenarios"),
    "schema": (".schema", "print the JSON Schema of a document"),
    "emulator": (".emulator", "serve the embedded Bedrock endpoint"),
}
