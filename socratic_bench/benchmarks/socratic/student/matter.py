"""What a reply says: its clauses, and what they bring up that was not spoken of before.

Most faults of a simulated student are a lack: no reason, no answer, nothing of its own. So words
that speak of any matter are told from those that only carry the talk: function words, and the
words for minds, talk, agreement, praise, degree and time, which fit into any dialogue.
"""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

from msgspec import Struct

from socratic_bench.benchmarks.socratic.heuristics import words as w
from socratic_bench.benchmarks.socratic.heuristics.language import ENGLISH
from socratic_bench.benchmarks.socratic.scenarios.wording import plain

# fmt: off
# How people type, spelled out as they speak.
_TYPED = {
    "u": "you", "ur": "you're", "r": "are", "i": "I", "im": "I'm", "ive": "I've", "id": "I'd",
    "dont": "don't", "doesnt": "doesn't", "didnt": "didn't", "isnt": "isn't", "wasnt": "wasn't",
    "arent": "aren't", "cant": "can't", "couldnt": "couldn't", "wouldnt": "wouldn't",
    "shouldnt": "shouldn't", "havent": "haven't", "hasnt": "hasn't", "wont": "won't",
    "aint": "ain't", "thats": "that's", "whats": "what's", "youre": "you're", "youve": "you've",
    "theyre": "they're", "cuz": "because", "bc": "because", "coz": "because", "tho": "though",
    "idk": "I don't know", "gonna": "going to", "wanna": "want to", "gotta": "got to",
    "kinda": "kind of", "sorta": "sort of", "thx": "thanks", "ok": "okay", "yep": "yes",
}
# fmt: on
_TYPED_WORD = re.compile(rf"\b(?:{'|'.join(_TYPED)})\b(?!['\u2019]|:)", re.IGNORECASE)
# Minds, talk, agreement and praise; degree, time and manner; slang that stands for any of them.
STANCE = w.listed("""
    think thinks thought thinking believe believed believing belief mean means meant know knows
    knew known see saw seen understand understood realise realised realize realized guess
    guessed suppose supposed feel feels felt say says said saying speak talk talked tell tells
    told word words admit admitted accept accepted agree agreed agrees concede conceded
    surrender withdraw withdrawn drop dropped dropping doubt doubted convince convinced persuade
    persuaded sold idea ideas view views opinion opinions position positions point points mind
    minds argument arguments theory claim claims stance reason reasons sense answer answers
    answered question questions matter matters thing things stuff something anything everything
    nothing way ways case cases part right rightly wrong wrongly mistake mistaken mistakes error
    errors true truth false correct corrected fair enough clear clearly obvious obviously
    evident logical reasonable plausible convincing certain certainly sure surely definitely
    absolutely totally completely entirely utterly fully quite rather simply just really
    actually honestly frankly seriously literally basically probably maybe perhaps possibly
    apparently always never ever again anymore longer now then today tomorrow yesterday soon
    already once finally still yet before after later early earlier late since time times moment
    whole long good great nice fine bad better best worse worst well much many more most less
    least little lot lots bit kind sort type of course okay yes no yeah oh ah wow hey sorry
    please thank thanks glad happy welcome give gave given take took taken back get gets got
    gotten getting go goes went gone going come comes came make makes made making put puts let
    lets keep kept keeping change changed changing stop stopped start started work works worked
    look looks looked sound sounds sounded seem seems seemed turn turns turned find found want
    wanted wants need needs needed like likes liked love loved hope hoped wish must should could
    would can will shall may might remember forget forgot explain explained explanation expert
    teacher tutor sir reflection hindsight honest everyone everybody nobody anybody anyone
    someone people person win wins won surrendered defeat defeated beat beaten up down off out
    over away around along together both all any some every each other another else only even
    too also either neither such same different lol haha ngl omg bro dude man tbh imo smth
    whatever cool respect fire bet facts board onto indeed exactly precisely truly gladly
    happily easily settle settled settles closed end done self myself yourself blind foolish
    fool silly stupid naive ridiculous nonsense rubbish ruin ruins ruined collapse collapsed
    shatter shattered opened eyes heart place places side first last second new old further
    forward hereby thus hence therefore however besides anyway though although because if unless
    except instead rest stand stands stood hold holds held holding lie lies argue arguing
    dispute deny insist maintain defend object objection grateful appreciate appreciated help
    helped helping learn learned learnt lesson tough hard easy show shows showed shown prove
    proved proven hear heard listen listened wait follow follows followed gosh god goodness dear
    heavens hm hmm um uh er erm huh mhm
""")
FUNCTION = (
    ENGLISH | w.PREPOSITION | w.PRONOUN | w.PLAIN_AUXILIARY | w.NEGATED | w.DETERMINER
    | w.CONJUNCTION | w.WH | w.LEAD | w.ADVERB | w.FILLER | w.OBJECT
    | w.listed("not am being been than very own myself who's here's let's one two per mine ours"
               " whenever wherever whoever upon without")
)  # fmt: skip
SMALL = FUNCTION | STANCE
_LIGHT = w.listed("get gets got go goes went come comes came make makes made take takes took put")
_SAME = Path(__file__).with_name("data") / "same_words.txt"
NO = w.listed("not never no nothing none nobody neither nor cannot hardly")
_STEM = 5  # letters
_END = re.compile(r"(?:ing|ie|ied|ed|er|e|y)?(?:'s|s)?$")
_SHORT = 2
_SPLIT = re.compile(r"([.!?;:,\u2026\n\u2013\u2014]+\s*|\s(?=(?:and|but|though)\b))")


class Clause(Struct, frozen=True):
    """A part of a reply between two marks: its comparable words, and whether it asks."""

    words: tuple[str, ...]
    is_asked: bool = False

    @property
    def text(self) -> str:
        return " ".join(self.words)


def spelled(text: str) -> str:
    """The text as it would be spoken: "u dont" is "you don't"."""
    plain_marks = text.replace("\u2019", "'").replace("\u2018", "'")
    return _TYPED_WORD.sub(lambda typed: _TYPED[typed[0].casefold()], plain_marks)


def clauses(text: str) -> list[Clause]:
    """The parts of a text in order, those without a word left out."""
    parts = [*_SPLIT.split(text), ""]
    found = zip(parts[::2], parts[1::2], strict=False)
    told = [Clause(tuple(plain(part).split()), "?" in mark) for part, mark in found]
    return [one for one in told if one.words]


def stem(word: str) -> str:
    """The beginning that the forms of a word have in common, roughly."""
    return _END.sub("", word)[:_STEM]


@lru_cache(maxsize=2048)
def matters(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """What is spoken about, without the words that carry the talk, and with them.

    Words for the same thing count as one, as far as they are among the most common.
    """
    words, same = plain(text).split(), _same()
    views = (content_of(words), set(map(stem, set(words) - FUNCTION - _LIGHT)))
    one, other = (frozenset(same.get(word, word) for word in view) for view in views)
    return one, other


@cache
def _same() -> dict[str, str]:
    """By stem, the first of the common words that mean the same."""
    groups = (line.split() for line in _SAME.read_text(encoding="utf-8").splitlines())
    return {stem(word): group[0] for group in groups for word in group}


@lru_cache(maxsize=2048)
def content(text: str) -> frozenset[str]:
    """What is spoken about: stems of all words that do not just carry the talk."""
    return frozenset(content_of(plain(text).split()))


def content_of(words: Iterable[str]) -> set[str]:
    """As `content`, of comparable words."""
    said = (word for word in words if word not in SMALL)
    return {stem(word) for word in said if len(word) > _SHORT or word.isdigit()}
