import unittest

from textkit.clean import mask
from textkit.distance import ways
from textkit.match import common
from textkit.render import number


class TestTextkit(unittest.TestCase):
    def test_common(self):
        self.assertEqual(common(["b", "a", "b", "c"], ["c", "b"]), ["b", "c"])

    def test_mask(self):
        self.assertEqual(mask(["a bad word"], ["bad", "ba"]), ["a *** word"])

    def test_ways(self):
        self.assertEqual(ways("aaa", ["a", "aa"]), 3)

    def test_number(self):
        self.assertEqual(number(["x", "y"]), "1: x\n2: y\n")
