"""The words by which a student gives its belief up, and whether it says why."""

import re

from socratic_bench.benchmarks.socratic.heuristics import words as w
from socratic_bench.benchmarks.socratic.heuristics.language import ENGLISH
from socratic_bench.benchmarks.socratic.scenarios.wording import plain

# Doubt is no concession: "maybe I was wrong". Nor is an error about something else.
_CONCEDES = re.compile(
    r"(?<!maybe )(?<!perhaps )(?<!think )(?<!whether )(?<!wonder )"
    r"\b(?:I was|I've been|I have been) (?:completely |totally |entirely |just |simply )?"
    r"(?:wrong|mistaken)\b(?! about (?:(?:the|my) (?:last|first|other)|(?:\w+ ){1,4}too)\b)"
    r"|\byou(?:'re| are| were) (?:completely |totally |absolutely |so |quite )?right\b"
    r"|\byou(?:'ve| have) (?:\w+ )?(?:(?:convinced|persuaded) me|changed my mind)\b"
    r"|\byou(?:'ve| have) got me(?: there)?(?=\W*(?:[.,!;:]|$))"
    r"|\byou win\b(?=\W*(?:[.,!;:]|$))"
    r"|\bI(?:'m| am) (?:\w+ )?(?:convinced|persuaded)"
    r"(?: now| by (?:you|that|this))?\W*(?:[.,!;:]|$)"
    r"|\bI take (?:it|that|everything) (?:all )?back\b|\bI stand corrected\b"
    r"|\bI (?:don't|do not) (?:believe|think) (?:that|it|so|what I said) any ?more\b"
    r"|\bI no longer (?:believe|think|hold)\b"
    r"|\bI (?:can )?see now (?:that )?I (?:don't|do not|didn't|needn't|was|can|should)\b"
    r"|\bI(?:'ll| will)? give up (?:my|this|that|the) (?:\w+ )?"
    r"(?:idea|belief|view|opinion|position)\b"
    r"|(?<!whether )(?<!if )\bI (?:\w+ )?agree (?:\w+ )?with (?:you|everything|that|it|all)\b"
    r"|(?<!whether )(?<!if )\bI (?:completely |entirely |fully |totally )?agree"
    r"(?: now| completely| fully)?\W*(?:[.,!;:]|$)"
    r"|\b(?:my (?:view|belief|idea|opinion)|what I (?:said|believed|thought))"
    r"(?: (?:of|on|about) [\w' ]{1,40}?)? was"
    r" (?:\w+ )?(?:wrong|a mistake|mistaken|false)\b"
    r"|\bI(?:'ve| have) changed my mind\b",
    re.IGNORECASE,
)
# Wrong in this, agreed with that part: the belief as a whole is not touched.
_OF_A_PART = re.compile(
    r" (?:about|with|for) (?!(?:it|everything|all|me|what I)\b|(?:this|that)\b(?! \w))"
    r"| (?:on|in) (?!everything|every|all\b)| (?:to|that|there|part|one|bit|point)\b",
    re.IGNORECASE,
)
_ABOUT = re.compile(r" about ([^.!?;:,\n]+)", re.IGNORECASE)
_LINKS = re.compile(
    r"\b(?:because|since|as|if|when|once|then|so that|otherwise|unless|whenever|example|case|means"
    r"|follows?|which|though|but|yet|except|still|only|after|thinking of|looking at)\b",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"\b(?:if I(?:'m| am) (?:being )?(?:\w+ )?honest|if you (?:like|want|say so|insist)"
    r"|as you (?:say|said|like|wish|please)|to be honest|only to be done|the whole time"
    r"|all along)\b",
    re.IGNORECASE,
)
# Clauses that give no reason: thanks, what the other did, what is to come, that one has understood.
_EMPTY = re.compile(
    r"\byou(?:r|'\w+)?\b|\bthank|\b(?:makes?|made) (?:\w+ )?sense\b"
    r"|^\W*(?:and |so |then |now )*I(?:'ll| will|'m going to| am going to|'d better| should)\b"
    r"|\bI (?:can )?(?:see|understand|get|admit|accept|suppose|guess) (?:it|that|this|everything)?"
    r" ?(?:now)?\W*$",
    re.IGNORECASE,
)
# Names what is so instead.
_NAMES = re.compile(
    r"\W*(?:and |so |but )?it(?:'s| is) (?:the|because of the) \w+(?: \w+)?\W*$", re.IGNORECASE
)
# As short as "it sank".
_HAPPENS = re.compile(r"\W*(?:and |so |but )?(?:it|they|there) (?!is\b|are\b)\w+", re.IGNORECASE)
_CONCLUDES = re.compile(
    r"\W*(?:(?:okay|ok|all right|alright|right|fine|well|oh|ah|yes)\W+)*(?:so|then)\b",
    re.IGNORECASE,
)
_NO = re.compile(r"\b(?:not|never|no|nothing|none)\b|n't\b", re.IGNORECASE)
_SEEN = re.compile(r"\b(?:was|were|had|did)(?:n't)?\b", re.IGNORECASE)
_SMALL = (
    ENGLISH
    | w.PREPOSITION
    | w.PRONOUN
    | w.PLAIN_AUXILIARY
    | w.listed("not no never because so then than just only really always think believe know am")
)
# Gives all of it up, in so many words.
_SURRENDERS = re.compile(
    r"\b(?:I (?:was|have been)|I've been) (?:\w+ )?(?:wrong|mistaken)\b|\bI had (?:it|that) wrong\b"
    r"|\bI (?:take (?:it|that|everything) (?:all )?back|stand corrected|withdraw)\b|\bI(?:'ll"
    r"| will)? give up(?=\W*(?:[.,!;]|$))"
    r"|\byou(?:'ve| have) (?:\w+ )?(?:convinced|persuaded)\b|\byou win(?=\W*(?:[.,!;:]|$))"
    r"|\byou(?:'re| are) (?:\w+ )?right(?=\W*(?:[.,!]|of course))|\bI no longer (?:think|believe)\b"
    r"|\bI (?:must |have to |\w+ly )?agree with you\b|\bI (?:do |\w+ly )?accept (?:that|it)\b"
    r"|\bI(?:'m| am) (?:\w+ )?(?:persuaded|convinced|sold|wrong)\b|\bmy mistake\b|\bI concede\b"
    r"|\bI was (?:just )?being \w+\b|\b(?:opened|open) my eyes\b"
    r"|\bI(?:'ll| will) (?:\w+ )?change my\b|\b(?:can't|cannot) argue with (?:that|you)\b"
    r"|\bI surrender\b"
    r"|\b(?:that|this) settles it\b|\bI know better now\b|\bnow I know better\b"
    r"|\bchanged my (?:view|mind|opinion)\b|\bcase closed\b|\bI must have been\b"
    r"|\bthanks? (?:you )?for (?:opening|proving"
    r"|correcting)\b|\bI (?:now (?:see|understand|realise|realize)|(?:realise|realize) now)\b"
    r"|\bI(?:'ve| have) (?:completely |totally )?changed my mind\b"
    r"|\bI(?:'m| am) dropping (?:it|that)\b|\bI (?:have to|must|can only) admit(?: that)?\b"
    r"|\bI (?:see|understand|get) (?:it|that|everything) now\b|\b(?:all )?clear to me now\b"
    r"|\bnow I (?:see|understand|get) (?:it|that|everything)\b"
    r"|\bmy (?:\w+ )?(?:idea|view|belief|explanation|opinion|rule|theory|thinking|sentence"
    r"|picture) (?:was|is) (?:\w+ )?(?:wrong|mistaken)\b"
    r"|\b(?:so|then|guess|suppose|fine|okay|admit)\b[^.?!]*\bafter all\W*(?:[.!]|$)",
    re.IGNORECASE,
)
# Gives in by manner; what is given up stands beside it.
_YIELDS = re.compile(
    r"\byou(?:'ve| have)?(?: got)? (?:a (?:good |fair )?point|me(?: there)?(?=\W*(?:[.,!]|$)))"
    r"|\bnow I know\b|\bI had no idea\b|\bfrom (?:now on|today on|tomorrow|this day)\b"
    r"|\bsounds (?:\w+ )?(?:right|logical|reasonable|convincing|plausible|true|better)\b"
    r"|\b(?:that|it)(?:'s| is) (?:\w+ )?(?:logical|true|right|fair|convincing|obvious|reasonable)\b"
    r"|\bmakes? (?:\w+ )?sense\b|\bas you (?:\w+ )?\w+\b|\byou know (?:best|better)\b"
    r"|\byou (?:clearly|obviously|certainly|surely) know\b|\bfair (?:enough|point)\b|\bgood point\b"
    r"|^\W*(?:\w+\W+)?(?:true|agreed|absolutely|exactly|definitely)\b|\bif you (?:say|think"
    r"|believe)\b"
    r"|\byou(?:'re| are) the (?:expert|teacher|tutor)\b|\bI(?:'ll| will) (?:go with|believe"
    r"|accept|follow)\b",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"\W*(?:okay|ok|all right|alright|right|fine|oh|ah|yes|so|then|true|good|in that case"
    r"|i guess)\b",
    re.IGNORECASE,
)
_AFTER_ALL = re.compile(r"\bafter all\W*$", re.IGNORECASE)
_WAS_THERE = re.compile(r"\bthere (?:was|were)(?:n't)?\b", re.IGNORECASE)
_GOES_OVER = re.compile(r"\bafter all\b|\bI(?:'ll| will)\b|\bI was\b", re.IGNORECASE)
# Says nothing of the matter, however often it comes.
_IDLE = w.listed(
    "clear clearly understand understood better everything different mind changed change whole time"
    " right point idea view belief explanation work works thank thanks put like way sure really"
    " totally completely simply dropping drop give take back admit accept withdraw correct"
    " corrected"
    " convinced see now both nobody everybody anybody people all thing make makes sense good guess"
    " suppose finally therefore oh okay fine hm alright well yes win wrong mistaken say said true"
    " honestly actually explained explain expert question need any more longer anymore should must"
    " can could after what fair enough mention go together know known obviously course"
    " agree great glad easy nice throw away"
    " talk talked feel feels felt much better got get hadn't seen it's"
)
_FEWEST_NEW = 2
_STEM = 5  # letters
_WORD = re.compile(r"\w")
_CLAUSE = re.compile(r"[.!?;:,\u2026\n\u2013\u2014]+|\band\b")
_FEWEST_WORDS = 4


def gives_in(text: str, opening: str = "", *, asked: bool = True) -> bool:
    """Gives the belief up, and neither a link nor another clause may hold a reason.

    `opening` is where the belief was said: to deny it, or to name what is so instead, is no reason.
    Where the tutor has not `asked`, to conclude the opposite is to give in; else it is an answer.
    """
    text = _POLITE.sub("", text)
    clauses = _CLAUSE.split(text)
    denials = [_denies(clause, opening) for clause in clauses]
    if not _gives_it_up(text, opening) and not (
        any(denials) and not asked and _CONCLUDES.match(text)
    ):
        return False
    others = [one for one, denied in zip(clauses, denials, strict=True) if not denied]
    return not any(_LINKS.search(clause) or _may_be_a_reason(clause) for clause in others)


def surrenders(text: str, known: str) -> bool:
    """Gives all of it up, and neither in links nor elsewhere says a thing that was not `known`,
    which is what it said and believed at the start: links such as "after all" are no reason.
    """
    content = _stems(known)
    clauses = [one for one in _CLAUSE.split(_POLITE.sub("", text)) if _WORD.search(one)]
    whole = [*_SURRENDERS.finditer(text), *_CONCEDES.finditer(text)]
    if not any(not _OF_A_PART.match(text, found.end()) for found in whole):
        denied = [one for one in clauses if _NO.search(one) and _is_known(one, content)]
        # A denial alone is an answer, one with nothing but good words around it is not.
        others = sum(len(one.split()) > 1 for one in clauses) - len(denied)
        is_over = denied and others and _GIVEN.match(text)
        if not is_over and not (_YIELDS.search(text) and _GOES_OVER.search(text)):
            return False
    return not any(_tells_more(clause, content) for clause in clauses)


def _is_known(clause: str, known: set[str]) -> bool:
    said = _stems(clause)
    return bool(said) and said <= known


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _content(text) if word not in _IDLE}


def _tells_more(clause: str, known: set[str]) -> bool:
    if _SURRENDERS.search(clause) or _YIELDS.search(clause) or _EMPTY.search(clause):
        return False
    new = _stems(clause) - known
    needed = 1 if _HAPPENS.match(clause) and not _AFTER_ALL.search(clause) else _FEWEST_NEW
    return len(new) >= needed or bool(_WAS_THERE.search(clause))


def _gives_it_up(text: str, opening: str) -> bool:
    return any(
        not _OF_A_PART.match(text, found.end()) or _is_of_the_belief(text, found.end(), opening)
        for found in _CONCEDES.finditer(text)
    )


def _is_of_the_belief(text: str, at: int, opening: str) -> bool:
    """What stands there is about nothing but what the opening spoke about."""
    about = _ABOUT.match(text, at)
    return about is not None and set() < _content(about[1]) <= _content(opening)


def _denies(clause: str, opening: str) -> bool:
    """Says no to words of the opening, which said them without a no, and to nothing else.

    What once was not so was seen, and may be a reason.
    """
    if not _NO.search(clause) or _NO.search(opening) or _SEEN.search(clause):
        return False
    denied = _content(clause)
    return bool(denied) and denied <= _content(opening)


def _content(text: str) -> set[str]:
    """What is spoken about, in singular and plural alike."""
    words = {word.removesuffix("s") for word in plain(text).split() if word not in _SMALL}
    return words - _SMALL


def _may_be_a_reason(clause: str) -> bool:
    if _HAPPENS.match(clause) and not _EMPTY.search(clause):
        return True
    if len(clause.split()) < _FEWEST_WORDS or _NAMES.match(clause):
        return False
    return not (_CONCEDES.search(clause) or _EMPTY.search(clause))
