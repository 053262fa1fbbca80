"""What a tutor asks, as far as the form of its words tells: openly, for a yes or no, or nothing."""

import re
from typing import Literal

from msgspec import Struct

Kind = Literal["open", "polar", "none"]

# A point within a number or a name ends nothing; the full stops of unspaced scripts always do.
_SEGMENT = re.compile(
    r"[^\n]+?(?:[.!?\u2026\u061f]+[\"'\u201d\u2019)*\]]*(?=\s|$)|[\u3002\uff1f\uff01]+|(?=\n)|$)"
)
# Also full-width, Arabic, Greek, Armenian, and how a Japanese question ends, alone or with a
# question word before.
_MARK = re.compile(
    "[?\uff1f\u061f\u037e\u055e]|\u304b[\u306a\u306d]?(?:\u3002|\\s*$)"
    "|(?:\u306a\u305c|\u3069[\u3046\u3093\u3053]|[\u4f55\u8ab0]|\u3060\u308c|\u3044\u3064)"
    "[^\u3002]*\u3067\u3057\u3087\u3046\u306d?(?:\u3002|\\s*$)"
)
# Asks without a question mark.
_INVITES = re.compile(
    r"\W*(?:(?:so|okay|ok|and|but|please|now|well|then|good)\W+)*"
    r"(?:tell me|describe|explain|say more|say a bit more|go on|give me|walk me|take me through"
    r"|help me (?:understand|see)|show me|compare|put [\w ]{2,20} in(?:to)? (?:one|your own|other)"
    r"|I wonder (?:what|which|who|where|when|why|how)"
    r"|I'm (?:curious|wondering) (?:about )?(?:what|which|who|where|when|why|how)"
    r"|I(?:'d| would) (?:like|love) to (?:hear|know|understand)"
    r"|(?:cu\u00e9nt[ae]|d[i\u00ed]ga|expl\u00edc[ae]|expl\u00edque|descr\u00edb[ae]"
    r"|h\u00e1bl[ae]|mu\u00e9str[ae])(?:me|nos)|dime|describe"
    r"|(?:erz\u00e4hl|beschreib|erkl\u00e4r|nenn|zeig|vergleich|sag)(?:e|en Sie)?(?= (?:mir|mal"
    r"|doch|uns|es|das|die|den|ein|eine|einen)\b)|gib mir|geben Sie mir)\b"
    r"|.*(?:\u6559\u3048|\u805e\u304b\u305b|\u8a71\u3057|\u8aac\u660e\u3057|\u6319\u3052|\u8003\u3048|\u60f3\u50cf\u3057)\u3066"
    r"(?:\u307f\u3066)?(?:\u304f\u3060\u3055\u3044|\u307e\u3057\u3087\u3046)",
    re.IGNORECASE,
)
# Does so where nothing is said after it.
_IMAGINES = re.compile(
    r"\W*(?:(?:so|okay|ok|and|but|please|now|well|then|good)\W+)*"
    r"(?:(?:let's |try to )?(?:imagine|suppose|picture|remember)|think (?:back|of|about)"
    r"|try to (?:say|describe)|imag\u00edn[ae](?:te|se)?|sup\u00f3n|piens[ae] en"
    r"|stell(?:e|en Sie)? (?:dir|sich)|denk(?:e|en Sie)? (?:mal |einmal )?an)\b",
    re.IGNORECASE,
)
_WH = re.compile(
    r"\b(?:what|which|who|whom|whose|where|when|why|how)(?=\b|'|\u2019)", re.IGNORECASE
)
_AUXILIARY = re.compile(
    r"\W*(?:(?:so|and|but|or|then|now|well|okay|ok|if so|in that case)\W+)*"
    r"(?:is|are|was|were|am|do|does|did|have|has|had|can|could|will|would|shall|should|may|might"
    r"|must|isn't|aren't|wasn't|don't|doesn't|didn't|haven't|can't|couldn't|won't|wouldn't"
    r"|shouldn't)\b",
    re.IGNORECASE,
)
# "Can you tell me who" asks who, "is it, and how" asks how, and "is it that on which you rely" may
# do so, too; "is it hot when it rains" and "is a friend who lies one" ask for a yes or no.
_TELLS = re.compile(
    r"(?:\b(?:and|but|or|so|then|not|yes|no|about|for|in|of|to|with|from|at|on|by|under)"
    r"|[,;:\u2013\u2014-])\W*$"
    r"|\b(?:tell(?:ing)?|told|say(?:ing)?|said|ask(?:ing|ed)?|know(?:ing)?|explain\w*|describ\w+"
    r"|show"
    r"|th(?:ink|ought) (?:of|about)|name|see|shar(?:e|ing)|remember|recall\w*|imagine|guess|wonder"
    r"|understand|find|check|test|decide|clear|sure|matter|ideas?|clue|notic\w+|consider\w*|list"
    r"|clarify\w*|picture|predict|identify|pinpoint|pick|(?:spell|point|work|figure|make) out"
    r"|(?:pin|narrow|write) down)\W+(?:\w+\W+){0,3}$",
    re.IGNORECASE,
)
# What, why and how ask even deep in a sentence, unless they stand for a thing that is talked about:
# "is that how you see it", "does what he says help", "do you do what they want".
_OPENS = re.compile(r"what|why|how", re.IGNORECASE)
_STANDS_FOR = re.compile(
    _AUXILIARY.pattern + r"\W*$"
    r"|\b(?:is|are|was|were|be|it|that|this|these|those|do|does|did|doing|done|get|gets|have|has|than"
    r"|like|believe|trust)(?: (?:just|really|exactly|also|not|only))*\W*$",
    re.IGNORECASE,
)
_REQUESTS = re.compile(
    r"\b(?:can|could|would|will) you\W+(?:\w+\W+)?(?:tell|say|describe|explain|give|show|think of"
    r"|name|share|walk|put|imagine|help|compare|elaborate|expand|recall|find|come up with|list)\b"
    r"|\b(?:any|an) (?:examples?|other|instances?)\b"
    r"|\b(?:is|are|was) there (?:an?|any|another|some|ever an?)\b.*\b(?:cases?|exceptions?|ways?"
    r"|explanations?|reasons?|situations?|times?|examples?|alternatives?|evidence)\b"
    r"|\b(?:puedes?|podr\u00edas?) (?:dar|decir|contar|poner|explicar|describir)\w*"
    r"|\b(?:ein beispiel|eine ausnahme|un ejemplo|una excepci\u00f3n)\b"
    r"|\b(?:kannst|k\u00f6nntest|k\u00f6nnen|k\u00f6nnten) (?:du|sie)\b.*\b(?:nennen|geben|sagen"
    r"|erz\u00e4hlen|beschreiben|erkl\u00e4ren)\b"
    r"|\u3066(?:\u3082\u3089\u3048|\u304f\u308c)\u307e(?:\u3059|\u305b\u3093)\u304b",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\bor\b(?! (?:not|so|less|no)\b)|\boder\b|\bo\b(?!')|\u8fd8\u662f|\u305d\u308c\u3068\u3082",
    re.IGNORECASE,
)
# "And the other jar?" asks what is to be said of it; "such as" and "your reason" ask for one.
_ELLIPTIC = re.compile(
    r"\W*(?:(?:such as|for example|for instance|like|namely|meaning|and then|and after that)\W*$"
    r"|your (?:\w+ )?(?:reasons?|evidence|proof|thoughts|examples?|guess)\b(?:\W+\w+){0,4}\W*$)|"
    r"\W*(?:and|but)\W+(?:the|your|his|her|its|their|our|a|an|with|in|on|for)\b"
    r"(?!.*\b(?:is|are|was|were|do|does|did|has|have|had|can|will|would)\b)(?:\W+\w+){1,5}\W*$"
    r"|\W*(?:und|aber) (?:der|die|den|dem|dein\w*|mit|bei|im|am|wenn)(?: \w+){1,3}\W*$"
    r"|\W*y (?:el|la|los|las|tu|su|con|en|si)(?: \w+){1,3}\W*$",
    re.IGNORECASE,
)
_BACK = re.compile(
    r"\b(?:that|this|it|those|so|das|daraus|davon|eso|ello)\b|\u305d\u308c|\u305d\u3053",
    re.IGNORECASE,
)
# Asks where what was said leads, or what has become of a view by now.
_END = re.compile(
    r"\b(?:follows?|leads?|conclu\w+|impl(?:y|ies)|(?:make|take) (?:of|from)|tells? you|say about"
    r"|how (?:has|have|did)\b.*\bchang\w+|how do you (?:see|view)\b.*\b(?:now|today|at the moment)"
    r"|folg\w+|hei(?:\u00df|ss)t das|schlie(?:\u00df|ss)\w+|hat sich\b.*\u00e4nder\w*|sigue"
    r"|deduc\w+|ha cambiado)\b"
    r"|\u3064\u307e\u308a|\u3068\u3044\u3046\u3053\u3068\u306f|\u4f55\u304c\u8a00\u3048"
    r"|\u5909\u308f\u308a\u307e\u3057\u305f",
    re.IGNORECASE,
)
_BRIEF = 4  # words: "Why do you think?"
# Where it is known how questions are asked; elsewhere every question counts as open, to be safe.
_WORDS = {
    "en": _WH,
    "es": re.compile(
        r"\b(?:qu\u00e9|cu\u00e1l(?:es)?|qui\u00e9n(?:es)?|c\u00f3mo|a?d\u00f3nde|cu\u00e1ndo"
        r"|cu\u00e1nt[oa]s?)\b",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"\b(?:was|wer|wen|wem|wessen|wie|wo|wann|warum|weshalb|wieso|weswegen|welche[rsmn]?"
        r"|wo(?:her|hin|mit|durch|f\u00fcr|rin|ran|rauf|raus|r\u00fcber|rum|von|vor|zu|bei|nach"
        r"|gegen))\b",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        "[\u4ec0\u751a]\u4e48|\u4ec0\u9ebc|[\u600e\u54ea\u8c01\u8ab0\u51e0]|\u591a\u5c11"
        "|[\u5982\u4e3a]\u4f55"
    ),
    "ja": re.compile(
        "[\u4f55\u8ab0]|\u306a[\u306b\u3093\u305c]|\u3069[\u3046\u3053\u308c\u306e\u3093]"
        "|\u3060\u308c|\u3044[\u3064\u304f]"
    ),
}
# Asks for a number, or for a time, a place or somebody in what happened: one remembers it or not.
_HOW_MANY = re.compile(
    r"\b(?:how (?:long|many|often|far|old|tall|big|heavy|late|early|expensive)"
    r"|how much(?! (?:of|do)\b)|what (?:time|year|age)|since when)\b"
    r"(?![^?]*\b(?:would|could|should|might|can|must)\b)"
    r"|\b(?:cu\u00e1nt[oa]s?|a qu\u00e9 hora|wie (?:lange|viele?|oft|alt|gro(?:\u00df|ss)|schwer"
    r"|sp\u00e4t|teuer)|seit wann)\b"
    r"|\u4f55[\u6642\u65e5\u5e74\u6708\u6b73\u4eba\u56de\u679a\u5186\u5206\u500b\u66dc]|\u3044\u304f[\u3064\u3089]|\u3069[\u306e\u308c]?\u304f\u3089\u3044",
    re.IGNORECASE,
)
_WHO_OR_WHEN = re.compile(
    r"\b(?:(?:when|where|who) (?:did|was|were)|who (?:paid|bought|made|told|said|gave|taught)"
    r"|what (?:exactly )?did (?:he|she|they|your \w+) (?:say|tell|answer|reply|write|ask)"
    r"|what (?:day|month|colou?r))\b(?![^?]*\b(?:would|could|should|might|can|must)\b)"
    r"|\b(?:(?:cu\u00e1ndo|d\u00f3nde) (?:fue|era|estaba|l[oa]|te|se)"
    r"|qui\u00e9n (?:te|le|l[oa]|fue)"
    r"|(?:wann|wo|wer) (?:hast?|haben|habt|war(?:st|en|t)?|bist|sind))\b|\u3044\u3064[^\u3082]",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty"
    r"|fifty|sixty|eighty|hundred|thousand|twice|dozen|dos|tres|cuatro|cinco|seis|siete|ocho"
    r"|nueve|diez|once|doce|veinte|treinta|cien|mil|zwei\w*|drei\w*|vier\w*|f\u00fcnf\w*|sechs\w*"
    r"|sieben\w*|acht\w*|neun\w*|zehn\w*|elf|zw\u00f6lf|zwanzig|drei(?:ss|\u00df)ig|hundert\w*"
    r"|tausend|einmal|\w+teen)\b"
    r"|[\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341\u767e\u5343\u4e07][^\u756a\u7dd2]",
    re.IGNORECASE,
)


class QuestionForm(Struct, frozen=True):
    """What is asked, and what is said besides."""

    kind: Kind
    questions: str
    rest: str

    @property
    def is_for_a_number(self) -> bool:
        """Whether it asks how many, how long, how old."""
        return self.kind == "open" and bool(_HOW_MANY.search(self.questions))

    @property
    def is_for_a_fact(self) -> bool:
        """Whether it asks for what one has to remember: a number, or who, where or when it was."""
        is_past = self.kind == "open" and bool(_WHO_OR_WHEN.search(self.questions))
        return is_past or self.is_for_a_number


def has_number(text: str) -> bool:
    return bool(_NUMBER.search(text))


def asked_by(tutor: str, language: str = "en") -> QuestionForm:
    """The tutor's words, read for questions. One open question among others makes them open."""
    parts = _SEGMENT.findall(tutor)
    asks = [bool(_MARK.search(part) or _INVITES.match(part)) for part in parts]
    if parts and _IMAGINES.match(parts[-1]):
        asks[-1] = True
    questions = [part for part, is_one in zip(parts, asks, strict=True) if is_one]
    rest = " ".join(part.strip() for part, is_one in zip(parts, asks, strict=True) if not is_one)
    if not questions:
        return QuestionForm("none", "", rest)
    is_open = any(_is_open(part, language) for part in questions)
    return QuestionForm("open" if is_open else "polar", " ".join(questions), rest)


def _is_open(question: str, language: str) -> bool:
    """In doubt it is: an honest answer fits both, "sort of" only a question for yes or no."""
    words = _WORDS.get(language.partition("-")[0].casefold())
    if words is None or not _MARK.search(question):
        return True
    if any(one.search(question) for one in (_CHOICE, _REQUESTS)):
        return True
    if any(one.match(question) for one in (_INVITES, _IMAGINES, _ELLIPTIC)):
        return True
    if words is not _WH and words.search(question):
        return True
    found = [*_WH.finditer(question)]
    if not _AUXILIARY.match(question):
        return bool(found)
    return any(_asks(question, one) for one in found)


def _asks(question: str, word: re.Match[str]) -> bool:
    """Whether a question word in a question for a yes or no asks something of its own."""
    if _TELLS.search(question, 0, word.start()):
        return True
    asks = _OPENS.fullmatch(word[0])
    return bool(asks) and not _STANDS_FOR.search(question, 0, word.start())


def asks_for_the_end(asked: QuestionForm) -> bool:
    """Whether it is asked openly where what was said leads, or what has become of a view."""
    return asked.kind == "open" and bool(_END.search(asked.questions))


def refers_to(last: str, tutor: str, asked: QuestionForm) -> bool:
    """Whether a question is about what was just said: it quotes it, says "that", or is very short.

    Such a question may be about anything else, and is understood by what went before.
    """
    if len(asked.questions.split()) <= _BRIEF or _BACK.search(asked.questions):
        return True
    words, heard = last.casefold().split(), tutor.casefold()
    runs = zip(words, words[1:], words[2:], strict=False)
    return any(" ".join(run).strip(".,;:!") in heard for run in runs)
