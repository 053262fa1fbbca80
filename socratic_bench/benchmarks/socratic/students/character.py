"""Whether a model steps out of its person: by praise, by acting, by its part, or beyond its age."""

import re
from collections.abc import Sequence
from functools import lru_cache

from socratic_bench.benchmarks.socratic.heuristics import words as w
from socratic_bench.benchmarks.socratic.heuristics.language import is_briefly_foreign
from socratic_bench.benchmarks.socratic.scenarios import Scenario, is_english, own_sentences
from socratic_bench.benchmarks.socratic.scenarios.wording import plain
from socratic_bench.benchmarks.socratic.students.matter import clauses, content, content_of, stem
from socratic_bench.benchmarks.socratic.students.role import SENTENCE

_ADMIRING = w.listed("""
    great excellent brilliant fantastic wonderful amazing thoughtful insightful profound clever
    smart lovely beautiful perceptive fascinating superb awesome genius ingenious wise stunning
    marvellous marvelous delightful epic legendary impressive incredible exceptional remarkable
    outstanding terrific splendid
""")
_APPROVING = _ADMIRING | w.listed("""
    good nice interesting cool neat respect bless wow deep sharp important powerful perfect fire
    sick dope careful carefully gentle refreshing stimulating helpful useful valuable provoking
""")
_ADMIRED = "|".join(sorted(_ADMIRING))
_OF_ASKING = re.compile(
    r"\b(?:questions?|ask(?:s|ed|ing)?|(?:put|puts|putting|phras\w+|fram\w+|word(?:ed|ing))"
    r" (?:it|that|this|things?)|way (?:of|to) (?:ask|put|phras|fram|look)\w*|way you"
    r"|ma(?:ke|kes|de) me think)\b"
)
_LIKING = r"\bi (?:\w+ ){0,4}(?:like|love|appreciate|admire|enjoy|adore)d?"
_LIKES = re.compile(rf"{_LIKING} (?:that|this|it|your|the|how|when|being|these|those)\b")
# To the tutor's face.
_OF_THE_TUTOR = re.compile(
    rf"\byou are (?:\w+ ){{0,3}}(?:good|{_ADMIRED})(?: at (?:this|that|it)| tutor| teacher|$)"
    r"|(?<!if )(?<!when )\byou (?:really |always |sure |do |certainly )?(?:are|have|have got|ask"
    rf"|know how|find|put|come up) (?:\w+ ){{0,3}}(?:best|gift|talent|knack|skill|{_ADMIRED})\b"
    r"|\bmy compliments\b|\bi (?:really )?admire\b|\bwhat a question$|\bi am (?:\w+ )?impressed\b"
    r"|\bwhat i call (?:an? )?(?:\w+ )?question\b"
    r"|\byou (?:\w+ ){0,2}(?:get|got|make|made) me (?:\w+ )?think(?:ing)?\b|\bbless you\b"
    r"|\byou always (?:know|find|ask)\b|\bwell (?:asked|phrased|framed)\b"
    r"|\b(?:thank you|thanks|glad) (?:\w+ ){0,4}(?:you asked|asking|questions?)\b"
    r"|\byou (?:\w+ )?(?:put|said) (?:it |that |this )(?:\w+ )?well\b"
    rf"|{_LIKING} (?:how|the way|it when|when|that) you\b"
)
_PRAISED = re.compile(
    r"^(?:\w+ )?(?:that|it|this) is (?:\w+ ){0,2}(?:thoughtful|insightful|profound|perceptive"
    r"|fascinating|provoking|brilliant|ingenious|eye opening)$"
    rf"|\b(?:{_ADMIRED}) (?:\w+ )?(?:point|one|observation|thought|challenge|comparison|angle"
    r"|perspective)\b|^(?:good|nice) one\b"
    r"|\bsuch an? (?:\w+ )?(?:good|great|interesting) (?:point|thing)\b"
    r"|^(?:(?:oh|wow|that is|how|very|so|truly|absolutely) )*(?:brilliant|clever|genius"
    r"|ingenious|masterful)\b(?! \w+ \w+ \w)"
)
# Any other word for a question praises it.
_QUESTION = re.compile(
    r"^(?:\w+ )?(?:that is |it is )?(?:an? |what an? |such an? )?(?:\w+ly )?(?!(?:hard|tough"
    r"|difficult"
    r"|tricky|odd|weird|strange|silly|stupid|confusing|long|big|other|another|next|first|same"
    r"|different|mean|trick|unfair|easy|simple|real|only|open|whole|your|my|the|this|that|an?"
    r"|last|no|one|any|what|of|in|to|old|funny|personal|annoying|horrible|bad|awful|exam)\b)\w+"
    r" question$|\bi find (?:that|this|the|your) question\b"
)
_MOST_BESIDES = 2  # content words of something else
_OTHERS = w.listed(
    "he she they him her them his their said says told teacher mum dad mother father"
)
_QUOTES = re.compile(r"(?:^|\s)[\"'\u201c\u2018]\w")
_NOT = w.listed("not no never")
# What stands in brackets at the start or by itself is done: nobody speaks in brackets.
_ACTED = re.compile(
    r"(?:^|(?<=\s))(?:\*+(?=\w)([^*\n]{2,120})(?<=[\w.!,])\*+|~(?=\w)([^~\n]{2,120})~"
    r"|_(?=\w)([^_\n]{2,120})_|\[(?=[^\W\d])([^\]\n\"']{2,120})\])"
    r"|(?:^\W*|[.!?\u2026]\s*)\(([^)\n]{2,120})\)"
)
_ASIDE = re.compile(
    r"\bI(?:'|\b)|\?|^(?:or|and|but|not|well|like|at least|maybe|perhaps|sorry|about|around|for"
    r"|in|on|to|the|my|that|this|it|is|was|as|also|even|only|plus|minus|yes|no|just|because|which"
    r"|who|where|sometimes|always|besides|nothing|something|anything|things|during|unless"
    r"|with (?:my|the|a) (?!smile|sigh|laugh))\b"
)
_NARRATED = re.compile(
    r"^\W*(?:(?:a |long |short )*(?:silence|pause)|beat)\."
    r"|\b(?:quiet|soft|slow|sad|hesitant|loud|cautious|shy|calm|gent|nervous|angri|cheerful)ly:",
    re.IGNORECASE,
)
_PROPS = 1  # a single word between asterisks is stressed, unless it stands at an end
_SETTING = r"(?:scenario|prompt|instructions?|script|profile|backstory|persona)"
_OF_ITS_PART = re.compile(
    r"\b(?:my|this) (?:character|persona)\b|\bpersona of\b|\brole-?play|\bin (?:my )?role as\b"
    r"|\b(?:stay|remain|keep|step|break|out)(?:ing|ped|ping)? (?:\w+ ){0,2}(?:role|character)\b"
    rf"|\b(?:the|my|this) {_SETTING} (?:[\w']+ )?(?:says?|tells?|asks?|wants?|states?|requires?"
    rf"|describes?|is|has)\b|\baccording to (?:the|my) (?:role|description|{_SETTING})\b"
    r"|\bper my (?:description|role|character|profile|persona)\b|\bas (?:described|instructed),"
    r"|\btrue to my (?:belief|view|role|character|part|persona)\b"
    r"|\bcharacter(?:'s)? (?:description|profile|sheet|traits?)\b|\brole I(?:'m| am|'ve)\b"
    rf"|\bin (?:this|the) (?:scenario|simulation|role)\b|\b(?:knowledge|information|role|persona)"
    r" I(?: was|'ve been| have been) (?:given|assigned|told)\b"
    r"|\bmy (?:role|vibe|persona) (?:\w+ )?is\b|\bmy (?:resistance|belief|weakness) (?:is|level)\b"
    r"|\bI(?:'m| am| was|'ve been| have been) (?:\w+ )?(?:supposed|meant|told|instructed|asked)"
    r" (?:not )?to (?:concede|give in|defend|insist|play|act|believe|hold|think|be (?:an?|the)"
    r" (?:\w+ )?(?:student|child|person)|be \w+ about this)\b"
    r"|\b(?:playing|pretending) (?:to be |an? [\w ]{0,12}(?:yr|year)|some(?:one|body)\b"
    r"|(?:an? |the |this )(?:\w+ )?(?:student|child|girl|boy|man|woman|person|teenager"
    r"|learner)\b)|\bI(?:'m| am|'ve been| was) (?:designed|programmed|scripted|written) (?:to|as)\b"
    r"|\bI(?:'m| am) (?:(?:literally|just|only|really) )*an? (?:simulated|fictional|virtual|bot"
    r"|chatbot|(?:ai|(?:large )?language model)(?! \w+(?:er|or|ist)\b))\b"
    r"|\bas an? (?:(?:large )?language model|chatbot|ai,)|\bportraying\b|\bsimulated student\b"
    r"|\bas an? (?:[\w-]+ ){0,5}?(?:of )?(?:\d+|\w+teen|eight|nine|ten|eleven|twelve|twenty)"
    r"(?:[- ]years?[- ]olds?\b|\b(?!\w))",
    re.IGNORECASE,
)
_NAME = re.compile(r"^\W*([^\W\d_][\w'-]+)(?:,| is\b| \()")
_LABEL = re.compile(
    r"^\W*(?:response|reply|student|learner|user|speaker)\s*(?:\(\w+\))?\s*:", re.IGNORECASE
)
_TRAITS = 2
_AS_SUCH = re.compile(
    r"\b(?:being|as an?|I(?:'m| am) \w+,|(?:since|because) I(?:'m| am)"
    r"|(?:supposed|meant|told me|wants? me) to)\b",
    re.IGNORECASE,
)
# Letters beyond the sixth of each word that is not of the person's own matter: how many in a
# sentence, and how many for each of its words, are too much at an age.
_LONG = 6
_ANY = ("some", "any", "every")
_BEYOND = {"child": (7, 0.5), "teenager": (10, 0.7)}


def praises(text: str) -> bool:
    """Praises the question or who asks, as no one does who tries to answer it."""
    return not is_briefly_foreign(text) and any(
        _is_praise(sentence) for sentence in SENTENCE.findall(text) if not _QUOTES.search(sentence)
    )


def _is_praise(sentence: str) -> bool:
    parts = [one.words for one in clauses(sentence)]
    whole = tuple(word for part in parts for word in part)
    return any(map(_approves, parts)) or (len(parts) > 1 and _approves(whole))


def _approves(words: Sequence[str]) -> bool:
    said, text = set(words), " ".join(words)
    if said & _OTHERS or said & _NOT:
        return False
    if any(one.search(text) for one in (_OF_THE_TUTOR, _PRAISED, _QUESTION)):
        return True
    of_asking = _OF_ASKING.search(text)
    if not (of_asking and (said & _APPROVING or _LIKES.search(text))):
        return False
    return len(content_of(said - _APPROVING) - content(of_asking[0])) <= _MOST_BESIDES


def steps_out(text: str, scenario: Scenario | None) -> bool:
    """Acts in brackets, puts its name before its words, or speaks of its part, or by its name."""
    if any(map(_is_act, _ACTED.finditer(text))):
        return True
    if any(one.search(text) for one in (_NARRATED, _OF_ITS_PART, _LABEL)):
        return True
    found = _NAME.match(scenario.persona) if scenario else None
    if scenario is None or found is None:
        return False
    return bool(_by_name(found[1]).search(text)) or _recites(text, scenario)


@lru_cache(maxsize=64)
def _by_name(name: str) -> re.Pattern[str]:
    """The name before the words, or in them: who is called stands between marks, or is quoted."""
    ends = r"(?::|>|\s[-\u2013\u2014]+\s)"
    before = rf"^\W*(?:\w+ )?{name}\b(?:[^.!?:,\n]|,(?= \w+ing)){{0,24}}?{ends}"
    called = "".join(
        rf"(?<!{word} )" for word in ("called", "call me", "is", "'s", "'m", "am", "says", "said")
    )
    after = r"(?!['\u2019]?s?[,!?:.\"\u201d])"
    return re.compile(
        rf"{before}|^\W*{name} (?:here|says)\b|^\s*[\[(<*]+{name}[\])>*]+|{called}\b{name}\b{after}"
        rf"|\b(?:I'm|I am) {name}\b[^!?]{{0,80}}\b(?:I'd|I would|so I) (?:say|think)\b"
        rf"|\bI,? {name}\b|\b(?:our|like|playing) {name}\b",
        re.IGNORECASE,
    )


def _is_act(found: re.Match[str]) -> bool:
    words = next(group for group in found.groups() if group)
    if found[5] is None and len(words.split()) <= _PROPS:
        return (
            found.start() == 0 or found.end() == len(found.string) or words.endswith(("s", "ing"))
        )
    return not _ASIDE.search(words)


def _recites(text: str, scenario: Scenario) -> bool:
    """Names traits by which the person is described, and does not itself speak of."""
    for sentence in SENTENCE.findall(text):
        named = len(content(sentence) & _traits(scenario))
        if named > _TRAITS or (named == _TRAITS and _AS_SUCH.search(sentence)):
            return True
    return False


@lru_cache(maxsize=64)
def _traits(scenario: Scenario) -> frozenset[str]:
    known = [*scenario.openings, scenario.belief, scenario.because, scenario.topic]
    told = " ".join(
        (*known, *scenario.details, *own_sentences(scenario).values(), scenario.knows or "")
    )
    return content(scenario.persona) - content(told)


def is_beyond_its_age(text: str, scenario: Scenario | None) -> bool:
    """Speaks in long words, those apart that the person knows from its own matter."""
    limits = _BEYOND.get(scenario.age) if scenario else None
    if scenario is None or limits is None or not is_english(scenario) or is_briefly_foreign(text):
        return False
    least, share = limits
    for sentence in SENTENCE.findall(text):
        words = plain(sentence).split()
        strange = (
            one for one in words if stem(one) not in _own(scenario) and not one.startswith(_ANY)
        )
        letters = sum(max(0, len(one) - _LONG) for one in strange)
        if letters >= least and letters >= share * len(words):
            return True
    return False


@lru_cache(maxsize=64)
def _own(scenario: Scenario) -> frozenset[str]:
    told = " ".join((*scenario.openings, *scenario.details, *own_sentences(scenario).values()))
    return frozenset(map(stem, plain(told).split()))
