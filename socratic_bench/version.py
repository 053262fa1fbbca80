"""The one place that names the program's version."""

VERSION = "0.1.0"
