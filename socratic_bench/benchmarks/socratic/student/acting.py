"""Whether a student plays to a gallery: acts between marks, or tells as a narrator what it does."""

import re

from socratic_bench.benchmarks.socratic.student.role import SENTENCE

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
_PROPS = 1  # a single word between asterisks is stressed, unless it stands at an end
# What only who looks on would tell: a bodily sign by itself, or a movement of a part of the body.
_SIGN = (
    r"(?:sigh|shrug|nod|frown|smil|grin|laugh|giggl|chuckl|pout|blush|winc|paus|hesitat|swallow"
    r"|fidget|squirm|blink|sniff|sob|gulp|star|glanc|gaz|smirk|snort|shudder|trembl|flinch|scowl"
    r"|mumbl|mutter|whisper|murmur|stammer|beam|yawn|perk|brighten|stiffen)"
)
_MOVE = (
    r"(?:look|shak|cross|fold|clench|rub|wip|wring|tap|drum|lower|rais|lift|push|cough|clear|stir"
    r"|point|shift|sit|stand|lean|tilt|scratch|bit|wav|roll|turn|tak|tuck|twist|fiddl|kick|press"
    r"|pull|bury|buri|put|grab|stretch|throw|scuff|pick|narrow|purs|furrow|draw|let|scrunch|wrinkl"
    r"|play|breath|crack|hold|swing|spread|bow|hang|bounc|step|settl|slump|straighten|avert|drop)"
)
_BODY = (
    r"(?:eye|eyebrow|head|arm|hand|shoulder|lip|hair|throat|chair|floor|ceiling|window|foot|feet"
    r"|finger|fist|brow|forehead|face|chin|voice|nose|mouth|cheek|tongue|teeth|knee|breath|sigh"
    r"|ground|distance|sleeve|cap|tea|pencil|gaze|seat|neck|thumb|knuckle|heel|leg|shoe)s?\b"
)
_WAY = r"(?:look|lean|turn|shift|step|slump|sink|glanc)"
_ADVERB = r"(?:\w+ly |just |then |still |only )?"


def _does(end: str) -> str:
    """A bodily sign, or a movement and what is moved, with the verb in a form."""
    return (
        rf"{_ADVERB}(?:{_SIGN}{end}|{_MOVE}{end}\b[^.!?:]{{0,60}}\b{_BODY}"
        rf"|{_WAY}{end} (?:forward|back|away|down|aside|around|closer|up)\b)"
    )


_NARRATED = re.compile(
    rf"^\W*(?:{_SIGN}e?s\b(?=\W*[.,!\u2026]| and | at | softly| to )"
    rf"|{_MOVE}e?s\b (?:\w+ ){{0,4}}{_BODY})"
    rf"|^\W*with an? (?:\w+ )?(?:{_SIGN}\w{{0,2}}|shake of|tear|wave|wink)\b[^.!?]{{0,30}}:"
    r"|^\W*(?:(?:a |long |short |awkward )*(?:silence|pause)|beat)\b\W"
    r"|\b(?:quiet|soft|slow|sad|hesitant|loud|cautious|shy|calm|gent|nervous|angri|cheerful)ly:"
    rf"|^\W*{_does('e?ing')}\b[^.!?:]{{0,60}}(?::|, (?:s?he|[A-Z]\w+) says\b)"
    rf"|^\W*I {_ADVERB}(?:{_SIGN}e?|{_MOVE}e? (?:\w+ )?my {_BODY})\b(?: and [^.!?]{{0,60}})?[.:]"
    rf"|^\W*(?:-{{2,}}|\u2014|<)\s?{_does('e?s')}",
    re.IGNORECASE,
)
# Of somebody else, this may be an answer.
_OF_ANOTHER = re.compile(
    rf"^\W*s?he (?:\w+ and )?{_does('e?s')}"
    rf"|^\W*(?:his|her) {_BODY} (?:\w+ly )?\w+s?\b(?![^.!?]*\b(?:I|my|me)\b)",
    re.IGNORECASE,
)
_ASKED_OF_ANOTHER = re.compile(r"\b(?:he|she|they|your \w+)\b", re.IGNORECASE)


def acts(text: str, name: str | None, heard: str) -> bool:
    """Acts between marks or in a narrator's words, of who bears the name or of "she" or "he".

    Who was asked about somebody else may tell what that one does.
    """
    if any(map(_is_act, _ACTED.finditer(text))) or _NARRATED.search(text):
        return True
    if _OF_ANOTHER.search(text) and not _ASKED_OF_ANOTHER.search(heard):
        return len(SENTENCE.findall(text)) > 1
    return name is not None and bool(
        re.match(rf"\W*{name}(?:'s {_BODY}| {_does('e?s')})", text, re.IGNORECASE)
    )


def _is_act(found: re.Match[str]) -> bool:
    words = next(group for group in found.groups() if group)
    if found[5] is None and len(words.split()) <= _PROPS:
        return (
            found.start() == 0 or found.end() == len(found.string) or words.endswith(("s", "ing"))
        )
    return not _ASIDE.search(words)
