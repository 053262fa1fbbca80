"""The closed classes of English words, and the verbs that commonly open a command.

Longer lists stand in words.toml. They are written from general knowledge of the language: no list
was counted out of labelled data.
"""

import tomllib
from pathlib import Path

_LISTS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


def listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


def word_list(name: str) -> frozenset[str]:
    """A list of words.toml."""
    return listed(_LISTS[name])


# What takes the place of code, an address or a quotation: a noun that no rule knows.
HOLE = "quux"
WH = listed("what why how who whom whose which when where what's whatever")
PLAIN_AUXILIARY = word_list("plain_auxiliary")
NEGATED = word_list("negated")
AUXILIARY = PLAIN_AUXILIARY | NEGATED
MODAL = listed("can could will would shall should may might must 'd 'll ought")
PRONOUN = word_list("pronoun")
DETERMINER = word_list("determiner")
SUBJECT_START = PRONOUN | DETERMINER
OBJECT = listed("me him her it us them you yourself yourselves this that these those one")
YOU = listed("you u ya")
SPEAKERS = listed("i we")
PERSON = listed("you he she they we i it there")
WHETHER = listed("if whether")
# What turns the statement before it into a question that wants a yes.
TAGS = listed("right correct huh eh innit no yeah yes true")
ADVERB = word_list("adverb")
PREPOSITION = word_list("preposition")
CONJUNCTION = listed("and or but nor yet so because although though while if unless whereas")
# Words that may stand before what a clause really says.
LEAD = word_list("lead")
LEAD_PAIRS = frozenset(
    {("i", "mean"), ("you", "know"), ("i", "guess"), ("i", "think"), ("i", "suppose"),
     ("all", "right"), ("of", "course"), ("at", "least"), ("for", "example"), ("in", "fact"),
     ("got", "it"), ("thank", "you"), ("i", "see")}
)  # fmt: skip
FILLER = listed("um uh er erm hmm hm mm mmm ah eh")

# Base forms that open a command. Nouns of the same spelling are told apart by what follows.
VERB = word_list("verb")
# "Suppose you could fly" asks for a thought, and what follows belongs to that thought.
SUPPOSING = listed("suppose assume imagine picture say pretend")
# What cannot follow a command's verb: then the first word was a noun, or a clause without subject.
NOT_AFTER_COMMAND = word_list("not_after_command")


def is_adverb(word: str) -> bool:
    """Yes to "gently", no to "fly" and "multiply"."""
    return len(word) > len("ally") and word.endswith("ly") and word not in VERB
