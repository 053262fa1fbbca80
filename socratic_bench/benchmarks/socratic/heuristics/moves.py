"""Moves in the talk itself: to think, to slow down, to turn to an idea, a word, an example.

They steer what is talked about, and leave open what the listener should do in the matter.
"""

from . import words as w

_MOVE = 6
_BARE = 2
_IT = frozenset({("that",), ("this",), ("it",)})
_TURNED_TO = (
    w.TALKED_OF
    | w.WH
    | w.listed("case cases step closer closely deeper apart aside around start beginning test")
)


def moves_the_talk(words: tuple[str, ...]) -> bool:
    """From its verb on: to think, to slow down, or to turn to an idea, a word, an example.

    These steer what is talked about, and leave open what the listener should do in the matter.
    """
    verb, after = words[:1], words[1:_MOVE]
    if not verb or verb[0] in w.THINKING or (not after and verb[0] in w.TURNING):
        return True
    turned = not _TURNED_TO.isdisjoint(after) or (len(after) <= _BARE and after[-1:] in _IT)
    return verb[0] in w.TURNING and turned


def holds_the_talk(words: tuple[str, ...]) -> bool:
    """A command to stay with the talk: "keep that thought", "take a moment", "try to imagine"."""
    verb, after = words[0], words[1:_MOVE]
    if verb == "try" and after[:1] == ("to",):
        return after[1:2] != () and after[1] in w.THINKING
    if (verb, *after[:1]) == ("put", "yourself"):
        return True
    return verb in w.TURNING and any(
        word in w.TALKED_OF and after[at - 1] in w.SUBJECT_START
        for at, word in enumerate(after)
        if at
    )
