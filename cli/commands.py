"""The subcommands: word -> module, imported when it is asked for."""

COMMANDS = {
    "run": "cli.run",
    "resume": "cli.resume",
    "scenarios": "cli.scenarios",
    "schema": "cli.schema",
    "emulator": "cli.emulator",
}
