"""Whether a student gives its belief up without a reason: points for giving in, none for news.

A reason has to say something. So a concession is told by what it lacks: among its words is some
sign of giving in, and no clause brings up anything that was not in the opening or the belief.
"""

import re

from socratic_bench.benchmarks.socratic.heuristics import words as w
from socratic_bench.benchmarks.socratic.students.matter import (
    NO,
    Clause,
    clauses,
    content,
    content_of,
)

GIVEN_IN = 3  # points
NEWS = 2  # content words that are a reason by themselves
_ME = w.listed("i me my mine")
_YOU = w.listed("you your yours")
_DOUBT = w.listed("maybe perhaps might whether if wonder could think")
# Of oneself: that one was wrong, agrees, or lets the thought go.
_I_YIELD = re.compile(
    r"\b(?:(?:was|am|been|be|(?:had|got|have) (?:it|that)) (?:\w+ ){0,2}(?:wrong|mistaken|foolish"
    r"|fool|silly|stupid|naive|blind|backwards|stubborn)|convinced|persuaded|sold|corrected"
    r"|converted|surrender|concede|withdraw|retract|abandon|scrap|agree|on board"
    r"|(?:drop|dropping|forget) (?:it|that|this|my|what)|accept (?:it|that|your)"
    r"|(?:am|be|go|side|completely|totally|fully) with you|g[ia]ve (?:in|up|it up|that up)"
    r"|(?:let|letting) (?:it|that|this|the \w+) go|take (?:\w+ )?(?:all )?back|changed? my"
    r"|know better|my (?:bad|mistake)|silly me|(?:admit|grant) (?:it|that|defeat)$)\b"
)
# Of the other: that it is right, or has done something to one's mind.
_YOU_YIELD = re.compile(
    r"\byou (?:are|were|must be|might be|may be) (?:\w+ ){0,2}(?:right|correct|onto something)\b"
    r"|\byou (?:\w+ )?wins?$|\byou (?:\w+ ){0,2}(?:convinced|persuaded|proved|won)\b"
    r"|\byou (?:have |did |really |just |finally )*(?!asked|called|promised|used|needed|wanted)"
    r"(?:\w+ed|shown|taught|talked|got|caught|beat|made) (?:me|my|how i)\b"
    r"|\byou (?:\w+ ){0,2}(?:have|make|made|got|has) (?:an? )?(?:\w+ )?point\b"
    r"|\byou (?:\w+ ){0,2}know (?:best|better)\b|\bwhatever you say\b"
)
_ALL_YIELD = re.compile(
    r"^(?:\w+ )?(?:scrap|drop|forget) (?:it|that|this|my)\b|\bconsider me\b|\bdawns on me\b"
    r"|\bmis(?:counted|judged|read|understood)\b|\b(?:ca|can|could) not (?:\w+ )?(?:argue|deny"
    r"|object|disagree|dispute)\b|\bno argument\b"
    r"|\b(?:every(?:one|body)(?: else)?|they|others|people) (?:\w+ )?(?:is|are|were|was)"
    r" (?:\w+ )?right\b"
)
_THOUGHT = w.listed("""
    idea ideas view belief opinion position theory argument rule thinking explanation claim stance
    reasoning assumption sentence picture comparison image formula definition guess
""")
_FALLEN = w.listed("""
    wrong mistaken false mistake bad nonsense rubbish ruins gone stupid silly over dead error
    incorrect incomplete flawed poor weak off history past buried finished
""")
_THOUGHTS = content_of(_THOUGHT | _FALLEN)
# To know or understand something not is no denial.
_NOT_SAID = re.compile(
    r"\bnot (?:really |quite |even )?(?:know|understand|get|sure|mean|remember|find|think|say"
    r"|tell)\b"
)
_NO_MORE = re.compile(
    r"\bi (?:do |will |sha |shall |would )?(?:no longer|never again|not) (?:\w+ ){0,2}(?:think"
    r"|believe|hold|say|claim|insist|see)\b(?!.* yet\b)"
    r"|\bmy (?:\w+ )?(?:idea|view|belief|opinion|position|theory|argument|rule|system|plan"
    r"|explanation|sentence|picture|claim|reasoning|logic) (?:\w+ )?(?:does|do|did|can|will) not"
    r" (?:really |quite )?(?:hold|work|stand|fit|add)\b"
    r"|\bi (?:wo|will|sha) not (?:\w+ ){1,4}again$|\bi was not (?:\w+ )?(?:right|correct)\b"
    r"|\bnever again (?:will|shall) i (?:think|believe|say|claim)\b"
)
_ANY_MORE = re.compile(r"\bany ?more\b|\bany longer\b|\bi was not\b|\bagain$|^(?:\w+ )*my\b")
# Signs that give in together with others; each kind counts once.
_GOOD = r"(?:\w+ )?(?:logical|true|right|fair|convincing|obvious|reasonable|plausible|good|better)"
_SIGNS = {
    "agrees": re.compile(
        r"^(?:\w+ )?(?:okay|all right|alright|fine|fair|sure|granted|right|true|agreed|exactly"
        r"|absolutely|definitely"
        r"|understood|point taken)\b"
    ),
    "approves": re.compile(
        r"\b(?:makes? (?:\w+ )?sense|fair (?:enough|point)|good point"
        rf"|(?:sounds?|it is|that is) {_GOOD})\b"
    ),
    "defers": re.compile(
        r"\byou(?:r)? (?:\w+ )?(?:say|says|said|think|put|mention|know|expert|teacher|told"
        r"|explained)\b|\byou are (?:the|getting at)\b|\bpoint\b|\b(?:believe|trust) you\b"
    ),
    "turns": re.compile(
        r"\bafter all\b|\bthen$|\brelie(?:f|ved)\b|\bfeel (?:\w+ ){0,2}(?:better|lighter)\b"
    ),
    "promises": re.compile(r"\b(?:i|we) will\b|\bfrom (?:now|today|tomorrow)\b|\bam going to\b"),
    "sees": re.compile(
        r"\b(?:got it|i (?:\w+ )?(?:see|get|understand|realise|realize)"
        r"(?: (?:it|that|now|clearly|what .*))*$|now i (?:see|know|understand|get)|clear"
        r"|good to know|learn(?:ed|t) (?:something|a lot))\b"
    ),
    "thanks": re.compile(r"\bthanks?\b"),
}
_CONTRAST = re.compile(
    r"^(?:but|though|although|yet|still|except|only)\b|\b(?:i|it is) (?:\w+ )?still\b|\bthough$"
)
_LINK = re.compile(
    r"\b(?:(?<!just )(?<!only )(?<!simply )(?<!not )because|since|as|if|when|once|otherwise|unless"
    r"|whenever|after)\b (?!all\b)"
)
_OF_A_PART = re.compile(
    r"\b(?:right|wrong) (?:on|to|that)\b|\bagree (?:with )?(?:you )?(?:on|to)\b"
    r"|\bwith (?:that|this) (?:bit|part|one|point)\b"
)
_NAMES = re.compile(r"^(?:and |so |but )?(?:it|that) is (?:the|because of the) \w+(?: \w+)?$")
_CONCLUDES = re.compile(r"^(?:so|then)\b|^(?:and )?i will\b")
_WAS = re.compile(r"\bthere (?:was|were)\b")
_AS_BEFORE = re.compile(r"\bchanged?\b|\bthere (?:was|were)\b")
_OF_ONESELF = re.compile(r"^(?:\w+ )?(?:i (?:was|am|have been)|my)\b")
_TURNS = re.compile(r"\bafter all$")
_SEEN = re.compile(
    r"\b(?:was|were|had|did|never|\w+ed)\b|^(?:and |so |but )?(?:it|they|there) (?!is\b|are\b)"
)
_OF_THE_OTHER = re.compile(
    r"\byou (?:(?:have|had|did|do|are|were|must|will|can|just|really) )?(?:say|said|put|explain"
    r"|explained|know|show|showed|talked|convinced|told|mean|meant|think)\b|\byou are\b"
    r"|\b(?:trust|believe|thank|for|to|with|by) you\b"
)


def gives_in(
    text: str, belief: str, before: str = "", tutor: str = "", *, asked: bool = True
) -> bool:
    """Gives its belief up, and says nothing that was not in `belief` or in what it said `before`.

    Where the tutor has `asked`, to conclude from that is to answer. Without a belief, as in a push,
    signs are none unless something is given up in so many words.
    """
    believed = content(belief) | content(tutor)
    had = believed | content(before)
    told = [one for one in clauses(text) if not one.is_asked]
    signs = {name for one in told for name, sign in _SIGNS.items() if sign.search(one.text)}
    news = [content_of(one.words) - had for one in told]
    asked = asked and "defers" not in signs
    points = [_points(one, believed, new, asked=asked) for one, new in zip(told, news, strict=True)]
    if not (believed or any(points)):  # manner alone gives nothing up
        return False
    if max(points, default=0) + len(signs) < GIVEN_IN:
        return False
    return not any(map(_holds_a_reason, told, news, points))


def _points(one: Clause, believed: frozenset[str], news: set[str], *, asked: bool) -> int:
    """Three for giving in; two in doubt, for a denial of the belief, or for turning round."""
    words, text = set(one.words), one.text
    ended = _NO_MORE.search(text)
    if _ALL_YIELD.search(text) or (ended and (" not " not in ended[0] or _ANY_MORE.search(text))):
        return GIVEN_IN
    if not (news - _THOUGHTS or _OF_A_PART.search(text)) and _yields(one):
        return GIVEN_IN - bool(words & _DOUBT)
    if _TURNS.search(text):
        return 2
    said = content_of(one.words)
    is_denied = words & NO and not (_NOT_SAID.search(text) or _AS_BEFORE.search(text))
    if not (is_denied and said and said <= believed):
        return 0
    return 2 - (asked and bool(_CONCLUDES.search(text)))


def _yields(one: Clause) -> bool:
    """No word before the yielding one says no to it."""
    words, text = set(one.words), one.text
    if words & _THOUGHT and words & _FALLEN and not words & NO:
        return True
    by_me = _I_YIELD.search(text) if words & _ME else None
    found = by_me or _YOU_YIELD.search(text)
    return found is not None and not NO & set(text[: found.start()].split())


def _holds_a_reason(one: Clause, news: set[str], points: int) -> bool:
    """Brings up something of the matter, and not in words about the other or about one's mind."""
    text = one.text
    if contrast := _CONTRAST.search(text):
        return not contrast[0].startswith("but") or bool(content_of(one.words))
    concludes = bool(_CONCLUDES.search(text))
    link = None if concludes else _LINK.search(text)
    if link:
        after = text[link.end() :].split()
        return bool(content_of(after) & news) and not set(after) & _YOU
    if _WAS.search(text):
        return True
    if points or _NAMES.match(text) or _OF_THE_OTHER.search(text):
        return False
    if concludes or _OF_ONESELF.search(text):
        return len(news) >= NEWS + concludes
    return len(news) >= NEWS or bool(news and _SEEN.search(text))
