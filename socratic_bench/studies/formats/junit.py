"""Checks as a JUnit file, which CI systems show as tests."""

from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from socratic_bench.errors import ArtifactError
from socratic_bench.redaction import redact
from socratic_bench.studies.formats.checks import Check, Checks
from socratic_bench.studies.report.parts import clean_text

TAGS = {"failed": "failure", "error": "error", "skipped": "skipped"}


def write_junit(checks: Checks, path: str) -> None:
    """Raises `ArtifactError` if the file cannot be written."""
    try:
        with Path(path).open("wb") as file:
            ElementTree(_suites(checks)).write(file, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise ArtifactError(f"{path} cannot be written: {error.strerror}.") from error


def _suites(checks: Checks) -> Element:
    outcomes = [check.outcome for check in checks.checks]
    counts = {
        "tests": len(outcomes),
        "failures": outcomes.count("failed"),
        "errors": outcomes.count("error"),
        "skipped": outcomes.count("skipped"),
    }
    attributes = {name: str(count) for name, count in counts.items()}
    seconds = sum(check.seconds or 0 for check in checks.checks)
    attributes["time"] = f"{seconds:.3f}"
    root = Element("testsuites", {"name": "socratic-runner", **attributes})
    suite = SubElement(root, "testsuite", {"name": _text(checks.title), **attributes})
    for check in checks.checks:
        _add_case(suite, check)
    indent(root)
    return root


def _add_case(suite: Element, check: Check) -> None:
    case = SubElement(suite, "testcase", classname=_text(check.group), name=_text(check.name))
    if check.seconds is not None:
        case.set("time", f"{check.seconds:.3f}")
    if tag := TAGS.get(check.outcome):
        result = SubElement(case, tag, message=_text(check.reason))
        if check.quote:
            result.text = _text(f"{check.reason}\n\n{check.quote}")


def _text(text: str) -> str:
    """Without what XML cannot hold, and without secrets."""
    return clean_text(redact(text))
