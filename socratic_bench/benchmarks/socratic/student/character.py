"""Whether a model speaks as its person would not: with praise, or in words beyond its age."""

import re
from collections.abc import Sequence
from functools import lru_cache

from socratic_bench.benchmarks.socratic.heuristics import words as w
from socratic_bench.benchmarks.socratic.heuristics.language import is_briefly_foreign
from socratic_bench.benchmarks.socratic.scenarios.scenario import (
    Scenario,
    is_english,
    own_sentences,
)
from socratic_bench.benchmarks.socratic.scenarios.wording import plain
from socratic_bench.benchmarks.socratic.student.matter import clauses, content, content_of, stem
from socratic_bench.benchmarks.socratic.student.role import SENTENCE

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
_LIKES = re.compile(
    rf"{_LIKING} (?:that|this|it|you|your|the|how|when|being|these|those)\b"
    r"|\bmeans (?:a lot|so much|the world)\b"
)
# To the tutor's face.
_OF_THE_TUTOR = re.compile(
    rf"\b(?:you are (?:\w+ ){{0,3}}(?:good|{_ADMIRED})(?: at (?:this|that|it)| tutor| teacher|$)"
    r"|you are (?:\w+ ){0,3}(?:kind|wise|good|helpful|patient|smart|clever) (?:and \w+ )?(?:to|for)"
    r" (?:ask|listen|help|put)|(?<!if )(?<!when )you (?:really |always |sure |do "
    r"|certainly )?(?:are|have|have got|ask"
    rf"|know how|find|put|come up) (?:\w+ ){{0,3}}(?:best|gift|talent|knack|skill|{_ADMIRED})\b"
    r"|you (?:have )?(?:\w+ ){0,2}(?:hit (?:on|upon|the)|nailed|put your finger|touched (?:on"
    r"|upon))\b|my compliments\b|i (?:really )?admire\b|what a question$|i am (?:\w+ )?impressed\b"
    r"|what i call (?:an? )?(?:\w+ )?question\b"
    r"|you (?:\w+ ){0,2}(?:get|got|make|made) me (?:\w+ )?think(?:ing)?\b|bless you\b"
    r"|you always (?:know|find|ask)\b|well (?:asked|phrased|framed)\b"
    r"|(?:thank you|thanks|glad) (?:\w+ ){0,4}(?:you asked|asking|questions?)\b"
    r"|you (?:\w+ )?(?:put|said) (?:it |that |this )(?:\w+ )?well\b"
    rf"|{_LIKING} (?:how|the way|it when|when|that) you\b)"
)
_TO_THE_FACE = re.compile(r"^(?:\w+ )?you are (?:\w+ )*(?:teacher|tutor)\b")
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
# What is said of a question of the other's, but for how hard it is, is praise or thanks.
_YOUR_QUESTION = re.compile(
    r"^what an? (?:\w+ )+(?:thing|way) (?:(?:to|of) (?:ask|put|wonder|bring)\w*)|\b(?:your|these"
    r"|those) questions?\b(?! (?:again|back|before|about|is (?:about|whether|what)))"
)
_HARD = w.listed("""
    hard tough difficult tricky odd weird strange silly stupid confusing confuse confuses long
    understand answer answers answering mean mind get follow easy simple unfair same scary scare
    annoying tired tiring hear heard read repeat lost unclear know dizzy mad angry worry
""")
_FOREIGN = re.compile(
    r"\b(?:gute|tolle|sch\u00f6ne|kluge|spannende|interessante|ausgezeichnete|hervorragende"
    r"|berechtigte|wichtige) frage\b(?! ist)|\bdanke f\u00fcr (?:die|diese|deine|ihre) frage"
    r"|\b(?:buen[oa]|excelente|gran|bonita|linda|interesante) (?:pregunta|reflexi\u00f3n)\b"
    r"|\bpregunta (?:\w+ )?(?:buena|excelente|interesante|bonita|profunda)\b"
    r"|\bgracias por (?:la |su |tu )?pregunta|(?:\u3044\u3044|\u826f\u3044|\u3088\u3044"
    r"|\u7d20\u6674\u3089\u3057\u3044|\u3059\u3070\u3089\u3057\u3044|\u92ed\u3044"
    r"|\u9762\u767d\u3044)\u3054?\u8cea\u554f",
    re.IGNORECASE,
)
_MOST_BESIDES = 2  # content words of something else
_OTHERS = w.listed(
    "he she they him her them his their said says told teacher mum dad mother father"
)
_QUOTES = re.compile(r"(?:^|\s)[\"'\u201c\u2018]\w")
_NOT = w.listed("not no never")
# Letters beyond the sixth of each word that is not of the person's own matter: how many in a
# sentence, and how many for each of its words, are too much at an age.
_LONG = 6
_ANY = ("some", "any", "every")
_BEYOND = {"child": (7, 0.5), "teenager": (10, 0.7)}


def praises(text: str) -> bool:
    """Praises the question or who asks, as no one does who tries to answer it."""
    told = [one for one in SENTENCE.findall(text) if not _QUOTES.search(one)]
    if any(map(_FOREIGN.search, told)):
        return True
    return not is_briefly_foreign(text) and any(map(_is_praise, told))


def _is_praise(sentence: str) -> bool:
    parts = [one.words for one in clauses(sentence)]
    whole = tuple(word for part in parts for word in part)
    return any(map(_approves, parts)) or (len(parts) > 1 and _approves(whole))


def _approves(words: Sequence[str]) -> bool:
    said, text = set(words), " ".join(words)
    if said & _NOT or (said & _OTHERS and not _TO_THE_FACE.search(text)):
        return False
    if _YOUR_QUESTION.search(text) and not said & _HARD:
        return True
    if any(one.search(text) for one in (_OF_THE_TUTOR, _PRAISED, _QUESTION)):
        return True
    of_asking = _OF_ASKING.search(text)
    if not (of_asking and (said & _APPROVING or _LIKES.search(text))):
        return False
    return len(content_of(said - _APPROVING) - content(of_asking[0])) <= _MOST_BESIDES


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
