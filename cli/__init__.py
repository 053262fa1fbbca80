"""The command. The only place that prints, reads argv and exits."""
