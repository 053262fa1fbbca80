"""Runs the tests with the standard library alone, and writes a JUnit file."""

import sys
import unittest
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).parents[1]


class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.suite = ET.Element("testsuite")

    def _add(self, test, tag=None):
        places = {"classname": type(test).__module__ + "." + type(test).__name__}
        case = ET.SubElement(self.suite, "testcase", places, name=test._testMethodName)
        if tag:
            ET.SubElement(case, tag)

    def addSuccess(self, test):
        self._add(test)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._add(test, "failure")

    def addError(self, test, error):
        super().addError(test, error)
        self._add(test, "error")


sys.path.insert(0, str(ROOT))
result = Result()
unittest.defaultTestLoader.discover(str(ROOT / "tests"), top_level_dir=str(ROOT)).run(result)
ET.ElementTree(result.suite).write(sys.argv[1])
sys.exit(not result.wasSuccessful())
