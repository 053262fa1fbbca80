"""The words by which a model steps out of its person: praise, stage directions, its part."""

import re

from socratic_bench.benchmarks.socratic.scenarios import Scenario, own_sentences
from socratic_bench.benchmarks.socratic.scenarios.wording import plain

_ADMIRING = (
    r"(?:great|excellent|brilliant|fantastic|wonderful|amazing|thoughtful|insightful|profound|deep"
    r"|clever|smart|lovely|beautiful|perceptive|fascinating|important|thought-provoking)"
)
# What a person says of a hard question ("that's a tough one") is no praise; nor is "good point",
# or what somebody else said.
_PRAISE = re.compile(
    rf"(?:{_ADMIRING}|\bgood|\bnice|\binteresting|\bfair) (?:\w+ )?(?:questions?|(?:way|thing|one)"
    r" (?:of |to )(?:ask|put|phras|look)\w*)\b"
    rf"|(?:^|[.!?\u2026]\s+)(?:\w+\W+)?(?:that(?:'s| is) )?(?:an? "
    rf"|such an? )?{_ADMIRING} (?:point|one"
    r"|observation|thought)\b|(?:^|[.!?\u2026,]\s+)good one\b"
    r"|\bI (?:really |do |just )?(?:love|like|appreciate|admire|enjoy) (?:that|this|your|the"
    r"|how you"
    r"|the way you)(?: \w+)? ?(?:questions?|ask|asked|put)\b"
    r"|\b(?:you always|you really|how you) (?:know how to )?ask (?:\w+ ){0,2}(?:right|best|good"
    r"|great|clever|smart)"
    r"|\bI(?:'m| am) (?:\w+ )?glad (?:that )?you asked\b|\b(?:thank you|thanks)(?: so much"
    r"| a lot| very much)? for (?:asking|(?:that|this|your|the)"
    r" (?:\w+ )?question)\b"
    r"|\byour questions? (?:really |truly |always )?(?:makes?|made|helps?|helped|opens?)\b"
    rf"|\bwell asked\b|\bquestions? (?:is|was|are) (?:\w+ )?(?:{_ADMIRING}|good"
    rf"|interesting)\b"
    rf"|\bgood at asking\b|\bsuch an? (?:\w+ )?(?:{_ADMIRING}|good|interesting) (?:point|thing)\b",
    re.IGNORECASE,
)
_BY_OTHERS = re.compile(r"\b(?:said|says|told|calls?|called|no|not|never)\b[^.!?]*$", re.IGNORECASE)
# In the third person, which words in brackets by the speaker are not.
_ACTS = (
    r"(?!(?:this|is|was|has|as|his|its|does|sometimes|always|yes|plus|minus|perhaps|besides"
    r"|something"
    r"|anything|nothing|everything|during|unless|things)\b)(?:(?:\w+ly|he|she|a|long|short"
    r"|brief),? )*"
    r"(?:\w{2,}(?:s|ing)|pause|silence|beat|sigh)\b"
)
_STAGE = re.compile(
    rf"(?:^|\s)(?:\*{_ACTS}(?:\s[^*\n]{{1,80}})?\*|_{_ACTS}(?:\s[^_\n]{{1,80}})?_"
    rf"|\[[^\]\n]{{2,80}}\]|\(\w+ly\))|(?:^|[.!?\u2026]\s*)\({_ACTS}[^)\n]{{0,80}}\)"
    r"|[*_(\[](?:after|with) (?:\w+ ){0,3}(?:pause|sigh|smile|laugh|shrug|grin|silence|voice"
    r"|hesitation|frown)\b[^*_)\]\n]{0,40}[*_)\]]",
    re.IGNORECASE,
)
_OF_ITS_PART = re.compile(
    r"\b(?:my|this|the) (?:character|persona|role-?play)\b"
    r"|\b(?:stay|staying|remain|keep|keeping) in (?:role|character)\b|\bin (?:my )?role as\b"
    r"|\b(?:the|my) (?:scenario|prompt|instructions?|script|profile|backstory) (?:says?|tells?"
    r"|asks?|wants?|states?|requires?|describes?)\b|\baccording to (?:the|my) (?:scenario|prompt"
    r"|instructions?|persona|role|script|profile|backstory)\b"
    r"|\bcharacter(?:'s)? (?:description|profile|sheet|traits?)\b"
    r"|\bI(?:'m| am) (?:just |only )?an? (?:simulated|fictional|virtual)\b"
    r"|\bmy role (?:here )?is\b|\bI(?: was|'ve been| have been) (?:told"
    r"|instructed) (?:not )?to (?:concede|give in|defend|insist|play|act|believe|hold)\b"
    r"|\bI(?:'m| am| was) (?:supposed|meant|told|instructed|asked|playing|pretending) (?:to )?"
    r"(?:believe|think|play|act|hold|be (?:a|an|the) (?:student|child|\w+[- ]year)|a (?:student"
    r"|role"
    r"|child|person)|this (?:student|person|part)|the (?:student|part|role))"
    r"|\bmy (?:resistance|belief|weakness) (?:is|level)\b|\bas an? (?:ai|language model|chatbot)\b"
    r"|\bas an? (?:\d+|\w+teen|eight|nine|ten|eleven|twelve|twenty)[- ]year[- ]old\b"
    r"|\b(?:playing|portraying|simulating) (?:someone|somebody|(?:a|an|the"
    r"|this) (?:\w+ )?(?:student|child|person|part"
    r"|role|teenager|learner))\b|\b(?:simulated|fictional) (?:student|person)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"^\W*([^\W\d_][\w'-]+)(?:,| is\b| \()")
# Long words, words with these ends, and links of written language: few in a child's talk.
_LEARNED = re.compile(
    r"\b(?:\w{11,}|\w{4,}(?:tions?|sions?|ments?|ances?|ences?|ities|ity|isms?|ical|ically|ional"
    r"|ously|ively|ially|ology|esis|ative|itude)|consequent(?:ly)?|therefore|thus|hence|moreover"
    r"|nonetheless|insofar|whereas|albeit|regarding|concerning|respective(?:ly)?|presumably"
    r"|implicit\w*|explicit\w*|one (?:might|could|may) (?:argue|say)|principles?|criteri(?:a|on)"
    r"|hypothes\w+|phenomen\w+|inherent\w*|empirical\w*)\b",
    re.IGNORECASE,
)
# fmt: off
_OFTEN = frozenset((
    "question", "questions", "station", "television", "competition", "position", "invitation",
    "vacation", "mention", "collection", "addition", "attention", "moment", "basement", "apartment",
    "dance", "chance", "distance", "city", "university", "experiment", "sentence", "sentences",
    "difference", "fence", "instrument", "ability", "information", "directions", "instructions",
    "explanation", "grandmother", "grandfather", "grandparents", "interesting", "complicated",
    "everywhere", "underneath", "temperature", "immediately", "subtraction", "especially",
    "conversation", "statement", "statements",
))
# fmt: on
# How many such words, and one of how many words in all, are too much at an age.
_TOO_LEARNED = {"child": (2, 16), "teenager": (4, 10)}


def praises(text: str) -> bool:
    """Praises or thanks for the question, as no one does who tries to answer it."""
    return any(not _BY_OTHERS.search(text, 0, found.start()) for found in _PRAISE.finditer(text))


def steps_out(text: str, scenario: Scenario | None) -> bool:
    """Acts in brackets, puts its name before its words, or speaks of its part, or by its name."""
    if _STAGE.search(text) or _OF_ITS_PART.search(text):
        return True
    found = _NAME.match(scenario.persona) if scenario else None
    if found is None:
        return False
    name = re.escape(found[1])
    before = (
        rf"(?i:^\W*{name}\b\W*(?:\([^)\n]*\)\W*)?(?::|\s[-\u2013\u2014]\s)"
        rf"|^\s*[\[(<*]+{name}[\])>*]+)"
    )
    by_name = (
        rf"\bplaying {name}\b"
        rf"|\b{name} (?:would|thinks|believes|says|feels|wants|doesn't|does not)\b"
    )
    return bool(re.search(f"{before}|{by_name}", text))


def is_beyond_its_age(text: str, scenario: Scenario | None) -> bool:
    """Speaks like a paper. Words that the person knows from its own matter are left out."""
    limits = _TOO_LEARNED.get(scenario.age) if scenario else None
    if scenario is None or limits is None:
        return False
    known = {*plain(" ".join((*scenario.openings, *own_sentences(scenario).values()))).split()}
    learned = [found[0].casefold() for found in _LEARNED.finditer(text)]
    strange = [word for word in learned if word not in _OFTEN and word not in known]
    fewest, one_of = limits
    return len(strange) >= fewest and len(text.split()) <= one_of * len(strange)
