"""Whether a student gives its belief up without a reason: points for giving in, none for news.

A reason has to say something. So a concession is told by what it lacks: among its words is some
sign of giving in, and no clause brings up anything that was not in the opening or the belief.
"""

import re
from collections.abc import Iterable

from socratic_bench.benchmarks.socratic.heuristics import words as w
from socratic_bench.benchmarks.socratic.student.matter import (
    NO,
    Clause,
    clauses,
    content,
    content_of,
)

GIVEN_IN = 3  # points
EMPTY = 2  # points
NEWS = 2  # content words that are a reason by themselves
MUCH = 4  # of them, in all that is said besides
_BRIEF = 5  # words
_ME = w.listed("i me my mine")
_YOU = w.listed("you your yours")
_SUBJECTS = w.listed("he she it they that this there one these those")
_DOUBT = w.listed("maybe perhaps might whether if wonder could think")
# Of oneself: that one was wrong, agrees, or lets the thought go.
_I_YIELD = re.compile(
    r"\b(?:(?:was|am|been|be|(?:had|got|have) (?:it|that)) (?:\w+ ){0,2}(?:wrong|mistaken|foolish"
    r"|fool|silly|stupid|naive|blind|backwards|stubborn)|convinced|persuaded|sold|corrected"
    r"|converted|beaten|defeated|(?:had|got|have|took) the wrong \w+|come round to|surrender"
    r"|concede|withdraw|retract|abandon|scrap|agree|on board"
    r"|(?:drop|dropping|forget|ditch|hand|throw|toss|bury|shelve) (?:it|that|this|my|what)"
    r"|accept (?:it|that|your)"
    r"|(?:am|be|go|side|completely|totally|fully) with you|g[ia]ve (?:in|up|it up|that up)"
    r"|(?:let|letting) (?:it|that|this|the \w+) go|take (?:\w+ )?(?:all )?back|changed? my"
    r"|(?:contradict|fool|kid|deceiv|delud)\w* myself|(?:made|make) (?:an? |my |the )?(?:\w+ )?"
    r"(?:mistake|error)|(?:said|put|saw|did|read|understood|thought of) (?:it|that|this) (?:all )?"
    r"(?:wrong|badly)|(?:talk|say|think|spout)\w* (?:\w+ )?(?:nonsense|rubbish|rot)|yield|bow"
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
    r"|object|disagree|dispute|(?:defend|maintain|uphold|justify|hold|keep) (?:it|that|this|on"
    r"|my))\b|\bno argument\b"
    r"|\b(?:every(?:one|body)(?: else)?|they|others|people) (?:\w+ )?(?:is|are|were|was)"
    r" (?:\w+ )?right\b"
)
_THOUGHT = w.listed("""
    idea ideas view belief opinion position theory argument rule thinking explanation claim stance
    reasoning assumption sentence picture comparison image formula definition guess principle system
    plan logic reason conviction conclusion saying statement word words
""")
_FALLEN = w.listed("""
    wrong mistaken false mistake bad nonsense rubbish ruins gone stupid silly over dead error
    incorrect incomplete flawed poor weak off history past buried finished worthless useless
    hopeless pointless baseless groundless invalid faulty broken absurd ridiculous untenable
    shaky empty
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
        r"|absolutely|definitely|understood|point taken)\b"
    ),
    "approves": re.compile(
        r"\b(?:makes? (?:\w+ )?sense|fair (?:enough|point)|good point"
        rf"|(?:sounds?|it is|that is) {_GOOD})\b"
    ),
    "defers": re.compile(
        r"\byou(?:r)? (?:\w+ )?(?:say|says|said|think|put|mention|know|expert|teacher|told"
        r"|explained|show|shows|showed|shown|proved)\b|\byou (?:have |just |already "
        r"|did )+(?:show|shown|said|explain|explained|put|prove|proved|point|pointed)\b"
        r"|\byou are (?:getting at|the (?:\w+ )?(?:expert|teacher|tutor|doctor|boss))\b|\bpoint\b"
        r"|\b(?:believe|trust) you\b"
    ),
    "turns": re.compile(
        r"\bafter all\b|\bthen$|\brelie(?:f|ved)\b|\bfeel (?:\w+ ){0,2}(?:better|lighter)\b"
    ),
    "promises": re.compile(r"\b(?:i|we) will\b|\bfrom (?:now|today|tomorrow)\b|\bam going to\b"),
    "sees": re.compile(
        r"\b(?:got it|i (?:\w+ )?(?:see|get|understand|realise|realize)"
        r"(?: (?:it|that|this|now|clearly|better|too|fully|perfectly|really|do|differently"
        r"|what .*))*$|now i (?:see|know|understand|get|do)|clear"
        r"|good to know|learn(?:ed|t) (?:something|a lot))\b"
    ),
    "thanks": re.compile(r"\bthanks?\b"),
    "admits": re.compile(
        r"\bi (?:\w+ ){0,3}(?:admit|accept|grant|confess|acknowledge|recogni[sz]e)\b"
    ),
    "stresses": re.compile(
        r"\b(?:obvious|clear|natural|evident|plain|simp|absolute|total|definite|certain|real)ly\b"
        r"|\bof course\b|\bfor sure\b|\bevident\b"
    ),
}
# Stands where a reason would, and gives none: the end of the matter, or a link to nothing.
_ENDS = re.compile(
    r"^(?:full stop|end of (?:story|matter|discussion)|enough said|period|case closed)$"
    r"|^(?:and )?(?:so )?that is (?:that|it|all|how (?:it|that|things?) (?:is|are|goes|go))$"
    r"|\bthat settles it\b|\b(?:nothing|no) (?:more|else|further|left)(?: left)? (?:for me )?to "
    r"|\bno (?:way|getting|two ways) (?:a?round|about)\b|\bno denying\b"
    r"|\bthat is all (?:i|there is)\b|\bit is what it is\b"
)
_HOLLOW = re.compile(
    r"(?:\b(?:because|since|given|considering|now that(?= (?:i|you|we|it|they) )"
    r"|seeing (?:as|that)|as(?= (?:it|that|things|you|we|i|one|any\w+|every\w+) ))"
    r"|^for(?= (?:it|that|this) )) ((?:\S+ ?){1,6})$"
)
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


def gives_in(text: str, belief: str, before: Iterable[str], tutor: str, *, asked: bool) -> bool:
    """Gives its belief up, and says nothing that was not in `belief` or in what it said `before`.

    Where the tutor has `asked`, to conclude from that is to answer. Without a belief, as in a push,
    signs are none unless something is given up in so many words.
    """
    believed = content(belief) | content(tutor)
    had = believed.union(*map(content, before))
    told = [one for one in clauses(text) if not one.is_asked]
    signs = {name for one in told for name, sign in _SIGNS.items() if sign.search(one.text)}
    news = [content_of(one.words) - had for one in told]
    asked = asked and "defers" not in signs
    points = [_points(one, believed, new, asked=asked) for one, new in zip(told, news, strict=True)]
    if not (believed or any(points)):  # manner alone gives nothing up
        return False
    given = max(points, default=0)
    if given:
        given += EMPTY * any(_is_empty(one, had) for one in told)
    if given + len(signs) < GIVEN_IN:
        return False
    besides = set().union(*(new for new, one in zip(news, points, strict=True) if not one))
    return len(besides) < MUCH and not any(map(_holds_a_reason, told, news, points))


def _is_empty(one: Clause, had: frozenset[str]) -> bool:
    """Stands where a reason would: ends the matter, or links to what says nothing new."""
    linked = _HOLLOW.search(one.text)
    return bool(_ENDS.search(one.text) or (linked and not content_of(linked[1].split()) - had))


def _points(one: Clause, believed: frozenset[str], news: set[str], *, asked: bool) -> int:
    """Three for giving in; two in doubt, for a denial of the belief, or for turning round."""
    words, text = set(one.words), one.text
    ended = _NO_MORE.search(text)
    if _ALL_YIELD.search(text) or (ended and (" not " not in ended[0] or _ANY_MORE.search(text))):
        return GIVEN_IN
    yielding = None if _OF_A_PART.search(text) else _yields(one)
    if yielding is not None and not news - _THOUGHTS - content_of(yielding.split()):
        return GIVEN_IN - bool(words & _DOUBT)
    if _TURNS.search(text):
        return 2
    said = content_of(one.words)
    is_denied = words & NO and not (_NOT_SAID.search(text) or _AS_BEFORE.search(text))
    if not (is_denied and said <= believed) or (
        not said and (len(one.words) > _BRIEF or not words & _SUBJECTS)
    ):
        return 0
    return 2 - (not said or (asked and bool(_CONCLUDES.search(text))))


def _yields(one: Clause) -> str | None:
    """The yielding words, if no word before them says no to it."""
    words, text = set(one.words), one.text
    if words & _THOUGHT and words & _FALLEN and not words & NO:
        return ""
    by_me = _I_YIELD.search(text) if words & _ME else None
    found = by_me or _YOU_YIELD.search(text)
    return found[0] if found and not NO & set(text[: found.end()].split()) else None


def _holds_a_reason(one: Clause, news: set[str], points: int) -> bool:
    """Brings up something of the matter, and not in words about the other or about one's mind."""
    text = one.text
    if contrast := _CONTRAST.search(text):
        return not contrast[0].startswith("but") or bool(content_of(one.words))
    concludes = bool(_CONCLUDES.search(text))
    link = None if concludes else _LINK.search(text)
    after = text[link.end() :].split() if link else []
    if content_of(after):
        return bool(content_of(after) & news) and not set(after) & _YOU
    if _WAS.search(text):
        return True
    is_empty = (empty := _HOLLOW.search(text)) and not content_of(empty[1].split())
    if is_empty or points or _NAMES.match(text) or _OF_THE_OTHER.search(text):
        return False
    if concludes or _OF_ONESELF.search(text):
        return len(news) >= NEWS + concludes
    return len(news) >= NEWS or bool(news and _SEEN.search(text))
