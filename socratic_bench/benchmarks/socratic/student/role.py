"""The words by which a student speaks in the tutor's place: as it, like it, or for it."""

import re

SENTENCE = re.compile(r"[^.!?\u2026\uff1f\u3002]+[.!?\u2026\uff1f\u3002]*")
QUESTION_MARK = re.compile(r"[?\uff1f\u061f]")
READ_CHARACTERS = 4000  # in a longer reply the roles show before
# Who speaks of itself answers; "me" alone is also said by who wants to hear more.
OF_SELF = re.compile(r"\b(?:I|my|mine|myself|we|our|ours)\b", re.IGNORECASE)
_I = re.compile(r"\bI\b|\b(?:in|of) my\b", re.IGNORECASE)
_TO_THE_OTHER = re.compile(r"\byou(?:r|rs|rself)?\b", re.IGNORECASE)

_SAYS_SO = re.compile(
    r"^\W*(?:tutor|teacher|assistant|student)(?:'s \w+)?\W*:"
    r"|^\W*[<\[(](?:tutor|teacher|assistant|student)[>\])]"
    r"|\bas (?:your (?:tutor|teacher|coach|instructor|assistant)|(?:a|the) (?:socratic )?tutor"
    r"|an? (?:ai|large language model|language model|ai [\w ]{0,20}(?:model|assistant|tutor)))\b,"
    r"|\bI(?:'m| am) (?:your (?:\w+ )?(?:tutor|teacher|coach|assistant)"
    r"|an? (?:socratic|ai) (?:tutor|assistant)|(?:only |just )?an? (?:ai|large)? ?language model"
    r"|(?:only |just )?an ai(?= language|\W|$)(?! \w+(?:er|or|ist)\b))"
    r"|\blet me ask you\b|\bmy (?:next )?question (?:for|to) you\b",
    re.IGNORECASE | re.MULTILINE,
)
_OF_THE_STUDENT = re.compile(
    r"(?:^|[.!?:,]\s+)(?:that )?the student (?:should|would(?: probably)?|will|seems|appears"
    r"|needs|might|could|must|assumes"
    r"|believes|thinks|is (?:stuck|assuming|right|wrong|mistaken|using|avoiding))\b",
    re.IGNORECASE,
)
# Takes in what the other said, as one who leads the talk does: by praise and thanks, by an echo.
_START = r"\W*(?:(?:ah|oh|okay|ok|yes|well|h?m+|mhm|aw|so|and)\W+)*"
_PRAISES = re.compile(
    _START
    + r"(?:(?:that(?:'s| is)|what) (?:an? )?(?:\w+ ){0,2}(?:insight|insightful|point|question"
    r"|answer|observation|perspective|reflection|thought|idea|distinction|start|interesting|great"
    r"|thoughtful|wonderful|fascinating)\b|(?:(?:very|really|how) )?"
    r"(?:interesting|wonderful|great|excellent|fascinating|good|thoughtful"
    r"|lovely|brilliant)(?: (?:question|point|observation|answer|thought|insight|start))?\W*$"
    r"|(?:thank you|thanks) for (?:sharing|your|being|telling|explaining)\b"
    r"|I(?:'m| am) (?:really |so )?glad (?:that )?you\b"
    r"|I(?: really)? appreciate (?:your|that you)\b)",
    re.IGNORECASE,
)
_ECHOES = re.compile(
    _START + r"(?:I (?:can )?(?:hear|understand|sense|notice|imagine|tell)\b[^.?!]{0,60}\byou\b"
    r"|what I(?:'m| am) hearing\b|I (?:hear|understand|see|get) (?:you|your \w+|it|that"
    r"|what you|how you|why you)\b|I (?:see|understand)\W*$|I(?:'d like| would like| want) you to"
    r" (?:consider|think about|imagine|picture|reflect|look at|examine)\b"
    r"|(?:it )?(?:sounds|seems|looks) (?:like|as if|as though) (?:[^.?!]{1,40} )?you\b"
    r"|you(?: seem| mentioned|'re saying|'ve mentioned| value)\b"
    r"|let(?:'s| us) (?:explore|unpack|examine|look|dig|think|consider|stay)\b)",
    re.IGNORECASE,
)
_PROBES = re.compile(
    r"\bwhat (?:do you mean by|makes you (?:think|say|believe|feel)|are you assuming|led you to"
    r"|evidence do you have|would count as|would your (?:ideal|perfect))\b"
    r"|\bwhat (?:does|would) [^?]{1,40} (?:mean|look like) (?:to|for) you\b"
    r"|\b(?:how do you know|can you define|why do you (?:feel|believe|think)"
    r"|how did you (?:come to|arrive at|reach)|how (?:might|could|would) you (?:test|check|know))\b"
    r"|\b(?:can|could|would) you (?:tell me more|walk me through|say more|elaborate"
    r"|expand on|describe)\b[^?]*\byou(?:r|rs|rself)?\b",
    re.IGNORECASE,
)
# The other's thought is looked into without a "you".
_EXAMINES = re.compile(
    r"\bwh(?:at|ich)(?: \w+){0,2} (?:assumptions?|evidence|premises?|reasons?)\b"
    r"|\bwhat (?:lies|is|stands) behind (?:it|that|this)\b",
    re.IGNORECASE,
)
# Who has not understood a word, or doubts what was just said, asks so as well.
_ASKS_BACK = re.compile(
    r"\bwhat do you mean(?: by [^?,;]{1,60})?|\b(?:can|could) you define (?:(?!\byou)[^?,;]){1,60}"
    r"|\b(?:how (?:do|would|could) you (?:know|check|test)|why do you (?:think|say|believe)"
    r"|what makes you (?:think|say|believe)|what evidence do you have)"
    r"(?: (?:so|that|this|it|for (?:that|this|it)))?"
    r"(?=(?:\W+(?:though|then|exactly|anyway|now))*\W*$)"
    r"|\bhow do you know [^?]{1,60}(?:n't|\bnot)\b[^?]*",
    re.IGNORECASE,
)
# What who is to be taught asks for, after "I see" or "good point" too.
_REQUESTS = re.compile(
    r"\b(?:can|could|will|would) you (?:please |just |maybe |also )?(?:explain|help|show|give|tell"
    r"|say|repeat|rephrase|remind|elaborate)\b"
    r"|^\W*(?:(?:so|and|but|or)\W+)?(?:do|did) you (?:have|mean|know)\b"
    r"|\bare you (?:sure|saying|asking|serious)\b",
    re.IGNORECASE,
)
_THANKS = re.compile(
    _START + r"(?:(?:thank you|thanks) for (?:sharing|your|being)|I(?:'m| am) (?:really |so )?glad"
    r"|I(?: really)? appreciate)\b",
    re.IGNORECASE,
)
# What a student asks that would rather be told.
_WANTS_TO_BE_TOLD = re.compile(
    r"\bwhat (?:would|should|do|can) you (?:do|say|think|recommend|advise|suggest|mean)\W*\?",
    re.IGNORECASE,
)


def swaps(text: str) -> bool:
    """Says that it is the tutor, speaks of the student, or leads the other on by questions.

    Such a question is none of the tutor's if the reply tells something of the speaker besides.
    """
    text = text[:READ_CHARACTERS].replace("\u2019", "'")
    if _SAYS_SO.search(text):
        return True
    if not OF_SELF.search(text) and _OF_THE_STUDENT.search(text):
        return True
    sentences = SENTENCE.findall(text)
    asked = [one for one in sentences if QUESTION_MARK.search(one)]
    told = [one for one in sentences if not QUESTION_MARK.search(one)]
    if tells_of_self(told) or any(_I.search(one) for one in asked):
        return False
    return any(_leads(one, told) for one in asked)


def tells_of_self(sentences: list[str]) -> int:
    """How many of them tell something of the speaker, beyond having heard the other."""
    return sum(bool(OF_SELF.search(one)) and not _takes_in(one) for one in sentences)


def _takes_in(sentence: str) -> bool:
    return bool(_PRAISES.match(sentence) or _ECHOES.match(sentence))


def _leads(question: str, told: list[str]) -> bool:
    """To ask what a word means, or for help, is a student's part too, unless praise comes first."""
    rest = _ASKS_BACK.sub("", question)
    if _PROBES.search(rest):
        return True
    if rest != question and not any(map(_PRAISES.match, told)):
        return False
    if _REQUESTS.search(question) and not any(map(_THANKS.match, told)):
        return False
    to_the_other = _TO_THE_OTHER.search(question) and not _WANTS_TO_BE_TOLD.search(question)
    return bool(to_the_other or _EXAMINES.search(question)) and any(map(_takes_in, told))
