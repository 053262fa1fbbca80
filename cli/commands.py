"""The subcommands: word -> module, imported when it is asked for, and what help says of it."""

COMMANDS = {
    "run": ("cli.run", "(the default) play once"),
    "resume": ("cli.resume", "go on with a run that was cut short"),
    "scenarios": ("cli.socratic.scenarios", "list the built-in scenarios"),
    "schema": ("cli.schema", "print the JSON Schema of a document"),
    "emulator": ("cli.emulator", "serve the embedded Bedrock endpoint"),
}
