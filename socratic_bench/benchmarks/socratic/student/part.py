"""Whether a model steps out of its part: acts it, names it, or speaks as what it is."""

import re
from functools import lru_cache

from socratic_bench.benchmarks.socratic.scenarios.scenario import Scenario, own_sentences
from socratic_bench.benchmarks.socratic.student.acting import acts
from socratic_bench.benchmarks.socratic.student.matter import content
from socratic_bench.benchmarks.socratic.student.role import SENTENCE

_SETTING = r"(?:scenario|prompt|instructions?|script|profile|backstory|persona)"
_OF_ITS_PART = re.compile(
    r"\b(?:my|this) (?:character|persona)\b|\bpersona of\b|\brole-?play|\bin (?:my )?role as\b"
    r"|\b(?:stay|remain|keep|step|break|out)(?:ing|ped|ping)? (?:\w+ ){0,2}(?:role|character)\b"
    rf"|\b(?:the|my|this) {_SETTING} (?:[\w']+ )?(?:says?|tells?|asks?|wants?|states?|requires?"
    rf"|describes?|specif\w+|mentions?|gives?|demands?|expects?|allows?|provides?|is|has)\b"
    rf"|\baccording to (?:the|my) (?:role|description|{_SETTING})\b"
    r"|\bper my (?:description|role|character|profile|persona)\b|\bas (?:described|instructed),"
    r"|\btrue to my (?:belief|view|role|character|part|persona)\b"
    r"|\bcharacter(?:'s)? (?:description|profile|sheet|traits?)\b|\brole I(?:'m| am|'ve)\b"
    rf"|\bin (?:this|the) (?:scenario|simulation|role)\b|\b(?:knowledge|information|role|persona)"
    r" I(?: was|'ve been| have been) (?:given|assigned|told)\b"
    r"|\bmy (?:vibe|persona) (?:\w+ )?is\b|\bmy role (?:\w+ )?is (?:that|(?:an?"
    r"|the) (?:[\w-]+ )*student"
    r"|to (?:be|play|act|believe|defend|resist|insist|stay|remain|pretend|hold))\b"
    r"|\bmy (?:resistance|belief|weakness) (?:is|level)\b"
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
_PLAYED = (
    r"(?:role|part|character|script|persona|profile|brief|personality|background|backstory|mindset"
    r"|misconception|belief|weakness|stance|attitude|mistake)"
)
_MACHINE = (
    r"(?:(?:large )?language model|chat ?bot|bot|ai(?! \w+(?:er|or|ist|ant|lab)\b)|computer program"
    r"|simulation|(?:simulated|virtual|fictional|artificial|digital|generated|made-up|ai) "
    r"(?:\w+ )?(?:student|learner|person|character|assistant|child|girl|boy|man|woman|being"
    r"|intelligence))"
)
# A part, and that it is played; a machine, and that it speaks; what the part would say.
# The edge of a word is looked for once, for all of them.
_NO_PERSON = re.compile(
    rf"\b(?:(?:stay|remain|keep|stick|stuck|hold|held|true|faithful|loyal|acting|speaking|answering"
    rf"|responding|replying)\w* (?:\w+ )?(?:in|to|with|within|by|from|as|out of) (?:my|the|this"
    rf"|his|her) (?:\w+ )?{_PLAYED}\b"
    rf"|{_PLAYED} (?:that )?(?:(?:which )?I(?:'m| am|'ve| have|'d| was)? ?(?:been |was )?(?:given"
    r"|assigned|handed|playing|play|portray\w*|asked|told|taking|supposed|meant)|(?:was|is) "
    r"(?:assigned|given) (?:to )?me)\b"
    rf"|(?:assigned|given|designated|scripted|prescribed) {_PLAYED}\b"
    rf"|(?:have to|must|need to|should|ought to|am to|'m to) (?:\w+ )?(?:keep(?: up)?"
    rf"|hold(?: on to)?"
    rf"|maintain|defend|stick to|stay in|remain in|act out|represent) (?:the|this|my) {_PLAYED}\b"
    r"|as (?:the|this) (?:student|learner|pupil|child|character),? I\b"
    r"|if I (?:were|was) (?:really|actually|truly) (?:an? |the )?(?:\d+|\w+teen|eight|nine|ten"
    r"|eleven|twelve|twenty|student|child|human|girl|boy|man|woman|person)\b"
    r"|I(?:'m| am) (?:\w+ )?(?:software|artificial|not (?:really |actually "
    r"|even )?(?:an? )?(?:human|real (?:person|student|child|girl|boy|human|man|woman)))\b"
    r"|(?:purposes? of|within|in|for|of|during|throughout) (?:this|the|our) (?:simulat(?:ion|ed)"
    r"|role-?play|dialogue exercise|simulated dialogue|conversation exercise)\b"
    rf"|(?:being|as|I'm|I am|than|really|just|only|like) (?:just |only |merely |really )?an?"
    rf" {_MACHINE}\b|as an? assistant,? I (?:can't|cannot|can not|don't|do not|have no|'m not)\b"
    r"|my (?:training data|system prompt|programming|creators?|developers?) (?:\w+ )?(?:has|have"
    r"|does|do|is|are|says?|tells?|wants?|includes?|contains?|don't|doesn't|didn't|made|gave)\b"
    r"|(?:acting|speaking|answering|responding|replying|posing|thinking|talking) (?:\w+ )?as (?:the"
    r"|an?|my) (?:\w+ )?(?:student|learner|child|teenager|pupil|character)\b"
    r"|(?:the|this|my|an?) (?:\w+ )?(?:student|learner|pupil|child|teenager|speaker|person"
    r"|character) (?:I(?:'m| am|'ve been| was) (?:play|portray|simulat|suppos|meant|represent)\w*"
    r"|in question|like (?:this|the one)|(?:here )?would (?:probably "
    r"|likely |surely )?(?:say|answer|reply|think|respond|insist|feel))"
    r"|(?:am|'m|is|was|'s|like|one) (?:the (?:one|person) )?described\b(?! (?:it|him|her|them)\b)"
    r"|I(?:'m| am| was|'ve been) (?:not |only |just |really )?(?:supposed|meant|told|instructed"
    r"|asked|here|prompted|expected|required) (?:not )?to (?:know about|(?:get|have|see) (?:it|this"
    r"|that) (?:wrong|yet)|be wrong|reveal|resist|stay|remain|seem|sound|respond|pretend|portray"
    r"|simulate|be (?:slow|stubborn|confused|reluctant|hesitant|warm|sceptical|skeptical)"
    r"|give (?:too |in)|agree|change my mind|make (?:this|that|a|the) mistake)\b"
    r"|(?:OOC|out of character|in character)\b"
    r"|(?:als (?:eine? )?(?:ki|sprachmodell|chatbot)|meine (?:figur|rolle) (?:w\u00fcrde|ist|sagt)"
    r"|in meiner rolle als|rollenspiel|como (?:una )?(?:ia|inteligencia artificial"
    r"|modelo de lenguaje)|mi (?:personaje|papel)|juego de rol)\b)"
    r"|AI\u3068\u3057\u3066|\u30ed\u30fc\u30eb\u30d7\u30ec\u30a4|\u5f79\u3068\u3057\u3066"
    r"|\u79c1\u306e\u5f79|\u30ad\u30e3\u30e9\u30af\u30bf\u30fc\u3068\u3057\u3066",
    re.IGNORECASE,
)
_OWNED = (
    r"(?:reply|answer|response|view|belief|voice|perspective|position|opinion|part|role|character"
    r"|shoes|mindset|personality|manner|style|mind|persona|attitude)"
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


def steps_out(text: str, scenario: Scenario | None, heard: str) -> bool:
    """Acts, puts its name before its words, or speaks of its part, or of itself by its name."""
    found = _NAME.match(scenario.persona) if scenario else None
    if acts(text, found[1] if found else None, heard):
        return True
    if any(one.search(text) for one in (_OF_ITS_PART, _NO_PERSON, _LABEL)):
        return True
    if scenario is None or found is None:
        return False
    return bool(_by_name(found[1]).search(text)) or _recites(text, scenario)


@lru_cache(maxsize=64)
def _by_name(name: str) -> re.Pattern[str]:
    """The name before the words, or in them: who is called stands between marks, or is quoted."""
    ends = r"(?::|>|\s[-\u2013\u2014]+\s)"
    before = rf"^\W*(?:\w+\W{{1,2}})?{name}\b(?:[^.!?:,\n]|,(?= \w+ing)){{0,24}}?{ends}"
    called = "".join(
        rf"(?<!{word} )" for word in ("called", "call me", "is", "'s", "'m", "am", "says", "said")
    )
    after = r"(?!['\u2019]?s?[,!?:.\"\u201d])"
    return re.compile(
        rf"{before}|^\W*{name} (?:here|says)\b|^\s*[\[(<*]+{name}[\])>*]+|{called}\b{name}\b{after}"
        rf"|\b(?:I'm|I am) {name}\b[^!?]{{0,80}}\b(?:I'd|I would|so I) (?:say|think)\b"
        rf"|\bI,? {name}\b|\b(?:our|like|as|playing|being) {name}\b"
        rf"|\b{name}, (?:the|an?|my) (?:\w+ )?(?:character|student|learner|person|part|role)\b"
        rf"|\b{name}'s (?:\w+ )?{_OWNED}\b|\b{_OWNED} of {name}\b",
        re.IGNORECASE,
    )


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
