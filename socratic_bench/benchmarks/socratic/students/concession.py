"""The words by which a student gives its belief up, and whether it says why."""

import re

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
    r" (?:about|in|on|with|for) (?!(?:it|everything|all|me|every \w+|what I)\b"
    r"|(?:this|that)\b(?! \w))"
    r"| (?:to|part|one|bit|point)\b",
    re.IGNORECASE,
)
_LINKS = re.compile(
    r"\b(?:because|since|as|if|when|once|then|so that|otherwise|unless|whenever|example|case|means"
    r"|follows?|which|though|but|yet|except|still|only|after|thinking of|looking at)\b",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"\b(?:if I(?:'m| am) (?:being )?(?:\w+ )?honest|if you (?:like|want|say so|insist)"
    r"|as you (?:say|said|like|wish|please)|to be honest|only to be done)\b",
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
_CLAUSE = re.compile(r"[.!?;:,\u2026\n\u2013\u2014]+|\band\b")
_FEWEST_WORDS = 4


def gives_in(text: str) -> bool:
    """Gives the belief up, and neither a link nor another clause may hold a reason."""
    plain = _POLITE.sub("", text)
    if not _gives_it_up(plain) or _LINKS.search(plain):
        return False
    return not any(_may_be_a_reason(clause) for clause in _CLAUSE.split(plain))


def _gives_it_up(text: str) -> bool:
    return any(not _OF_A_PART.match(text, found.end()) for found in _CONCEDES.finditer(text))


def _may_be_a_reason(clause: str) -> bool:
    if len(clause.split()) < _FEWEST_WORDS:
        return False
    return not (_CONCEDES.search(clause) or _EMPTY.search(clause))
