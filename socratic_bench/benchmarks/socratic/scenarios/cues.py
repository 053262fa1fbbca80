"""The words of a question that draw something out of a student."""

import re
from functools import cache, lru_cache

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.wording import is_unspaced

# Questions that fit any talk, by what they ask for. A cue that is one of them stands for all of its
# kind, and draws out less surely than a cue of the matter.
GENERAL = """
why|reason*|what makes you|because|how come|ground*|justif*|rest on|rests on|behind|based on
|underl*|on what|warum|wieso|weshalb|grund|gründe|begründ*|por qué|razón|porque|te hace pensar
|le hace pensar
|なぜ|どうして|理由|なんで|根拠

how do you know|how can you tell|how sure|sure|certain*|evidence|prove|proof|observ*|seen
|experience*|check*|test|tested|support*|convince*|notice|found out|find out|learn*|heard
|sicher|beleg*|beweis*|erfahrung*|beobacht*|prüf*|cómo sabe|cómo sabes|cómo lo sabe*|segur*
|prueba*|aprend*
|確か|証拠|経験

example*|for instance|a case|which case|cases|situation*|exception*|instance|occasion|always
|every case|ever|comes to mind|last time|apply|applies|time when|beispiel*|fall|fälle|immer
|ausnahme*|ejemplo*|siempre|excepci*|caso|例えば|たとえば|いつも

mean|means|mean by|meaning|define*|definition|describe*|in what sense|one sentence|explain*
|distinguish*|differ*|difference|compare*|similar|word|words|call it|what exactly|picture
|meinst|meinen sie|bedeutet|heißt|heisst|definier*|wort|unterschied*|significa*|palabra*|explic*
|describ*|diferen*|意味|とは|定義|言葉|違い

what if|what would|what happens|suppose|imagine|follow|follows|consequence*|lead|leads
|imply|implies|affect*|result|turn out|then what|if you|was wäre|angenommen|stell dir
|stellen sie sich|folg*|passieren|y si|imagin*|supon*|pasaría|もし|仮に|想像

other side|someone else|somebody else|disagree*|opposite|critic*|object|stranger|others
|point of view|other people|alternative*|another way|different way|look different|objection*
|mom say|mum say|dad say|mother say|father say|friend say|he say|she say|they say
|gegner|anders sieht|gegenteil|einwand|kritik*|jemand|andere|otra persona|alguien|otros
|contrari*|反対|ほかの人|他の人

assum*|take for granted|taking for granted|presuppos*|depend*|have to be true|must be true
|voraus|annahme*|hängt|abhäng*|supuesto*|前提|当たり前

feel*|matter*|important|cost|costs|trouble*|worr*|want|hope|value|let go|care|afraid
|fühl*|gefühl*|wichtig|angst|hoff*|wünsch*|sient*|import*|quier*|気持ち|大切|怖

change your mind|changed|doubt*|mistaken|wrong|false|less sure|give up|reconsider
|zweif*|falsch|irr*|duda*|equivoc*|疑|間違

what else|what about|tell me|say more|more about|think|thought|believe|know|how
"""
_PART = re.compile(r"[^\W_]+(?:['-][^\W_]+)*\*?")
_GAP = r"\W+"


class Cues(Struct, frozen=True):
    """Cues made ready: the words of the matter, and the general kinds."""

    of_the_matter: re.Pattern[str] | None
    kinds: frozenset[int]

    def n_matching(self, text: str) -> int:
        """How many different words of the matter the text has."""
        if self.of_the_matter is None:
            return 0
        return len({found[0].casefold() for found in self.of_the_matter.finditer(straight(text))})


@lru_cache(maxsize=4096)
def ready(cues: tuple[str, ...]) -> Cues:
    of_the_matter = [cue for cue in cues if not is_general(cue)]
    kinds = frozenset(kind for cue in cues if (kind := kind_of(cue)) is not None)
    return Cues(_pattern(tuple(of_the_matter)) if of_the_matter else None, kinds)


def can_match(cue: str) -> bool:
    """Whether it is made of words with blanks between them, each with a `*` behind it or not."""
    return is_unspaced(cue) or _parts(cue) == straight(cue).casefold().split()


def matches(cue: str, question: str) -> bool:
    """Whether the words of the cue stand in the question one after the other."""
    return bool(_pattern((cue,)).search(straight(question)))


def is_general(cue: str) -> bool:
    return kind_of(cue) is not None


def kind_of(cue: str) -> int | None:
    """Which kind of general question the cue is one of; `None` if it is of the matter."""
    return _kinds().get(straight(cue).casefold().rstrip("*"))


@lru_cache(maxsize=8)
def kinds_asked(questions: str) -> frozenset[int]:
    """Of which general kinds the questions are."""
    text = straight(questions)
    kinds = map(_pattern, _cues_by_kind())
    return frozenset(n for n, kind in enumerate(kinds) if kind.search(text))


def straight(text: str) -> str:
    return text.replace("\u2019", "'")


@cache
def _kinds() -> dict[str, int]:
    return {cue.rstrip("*"): n for n, cues in enumerate(_cues_by_kind()) for cue in cues}


@cache
def _cues_by_kind() -> tuple[tuple[str, ...], ...]:
    kinds = GENERAL.strip().split("\n\n")
    return tuple(tuple(kind.replace("\n", "").split("|")) for kind in kinds)


@lru_cache(maxsize=4096)
def _pattern(cues: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(_written, cues)), re.IGNORECASE)


def _written(cue: str) -> str:
    if is_unspaced(cue):
        return re.escape(cue.strip("* "))
    words = [re.escape(part.rstrip("*")) + r"\w*" * part.endswith("*") for part in _parts(cue)]
    return rf"(?<!\w){_GAP.join(words)}(?!\w)"


def _parts(cue: str) -> list[str]:
    return _PART.findall(straight(cue).casefold())
