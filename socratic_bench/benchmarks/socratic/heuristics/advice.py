"""Which sentences advise: by a command, or by a subject and a modal verb ("you should")."""

from . import words as w
from .grammar import Clause, Rules, Sentence, says, states

# Commands to think or to answer: they advise no action.
_TO_THE_MIND = w.listed(
    "imagine suppose assume guess hope mean note hear believe thank excuse forgive wish picture"
    " know remember recall notice worry think reflect describe explain elaborate ponder wonder"
)
_THINKING = _TO_THE_MIND | w.listed(
    "see explore examine consider unpack pause clarify discuss revisit rethink slow dig define"
)
# "Say you had one wish" supposes, "say more" asks.
_NOT_SAID = w.PRONOUN | {"more", "a", "that", ""}
_ASKED_OF_ONESELF = w.listed("ask tell remind put")
# Followed by one of the next list, these change the topic of the talk.
_TURNING = w.listed(
    "look take turn stay hold keep go step return come zoom focus test talk begin start set move"
    " stick sit check question put"
)
_TALKED_OF = w.listed(
    "thought thoughts idea ideas question questions claim claims belief beliefs argument word"
    " words example examples definition assumption assumptions premise principle point view moment"
)
_TURNED_TO = "case|cases|step|closer|closely|deeper|apart|aside|around|beginning|test"
# After these a clause depends on another: "so you can", "things you could".
_SUBORDINATE = (
    "that|so|what|which|where|as|if|when|because|how|why|whatever|until|once|who|than|things?|way"
    "|every(?:thing)?|all|anything|something|whether|wherever"
)
_BEFORE = rf"(?:^| (?!(?:{_SUBORDINATE}) )\S+) "
_ADVERBS = rf"(?:(?:{'|'.join(sorted(w.ADVERB))}) ){{0,2}}"


def commands(sentence: Sentence) -> bool:
    """Whether a verb without a subject tells the listener to act, not only to think or answer."""
    return any(clause.command and _commands(clause) for clause in sentence.clauses)


def _commands(clause: Clause) -> bool:
    verb = clause.command
    words = clause.body[clause.body.index(verb) :]
    after = "".join(words[1:2])
    if verb in {"consider", "remember"}:
        return after.endswith("ing") or (verb == "remember" and after == "to")
    if verb == "say":
        return after not in _NOT_SAID
    if (verb, after) == ("try", "to"):
        return _THINKING.isdisjoint(words[2:3])
    is_asked_of_oneself = verb in _ASKED_OF_ONESELF and after == "yourself"
    is_aloud = verb in _TO_THE_MIND or after in {"me", "us"}
    turns_the_talk = verb in _TURNING and any(
        word in _TALKED_OF and words[at] in w.SUBJECT_START for at, word in enumerate(words[1:6])
    )
    return not (is_asked_of_oneself or is_aloud or turns_the_talk)


_handed_back = says(
    r" (?:according to (?:you|your)|in your (?:view|opinion)|your (?:rule says|(?:view|claim) is)"
    r"|sounds like|seems like you|you (?:said|mentioned|told|felt|feel like)|hear(?:ing)? you say"
    r"|you (?:'re|are) saying|were true|if (?:it|that) is true) "
)
_concludes = says(r"^ so (?!we |why |how |what |let |maybe |perhaps )")


ADVISING: Rules = {
    "command": commands,
    "late command": states(
        r" (?!(?:to|i|we|they|always|who|not|people|me|do|did|don't|can|could|will|would|should"
        r"|might|may|must|'ll|'d) )\S+ (?:please|try|make sure|consider \S+ing) \S"
        r"|^ (?:if|when|once) .* then (?!(?:i|you|he|she|it|we|they|that|this|the|a|an"
        r"|my|your|there|is|are|was|what|why|how|do|did|can|could|would|will|should) )\S"
    ),
    "joint invitation": says(
        rf" (?:let 's|shall we) (?!(?:{'|'.join(_THINKING)}) |(?:{'|'.join(_TURNING)})"
        rf" (?:(?:(?:at|on|with) )?(?:(?:that|this|it) )?$|(?:\S+ ){{0,4}}(?:{_TURNED_TO}"
        rf"|{'|'.join(w.WH | _TALKED_OF)}) ))\S"
    ),
    "duty": states(
        rf"{_BEFORE}(?:you|u|ya|we|people|everyone|everybody|someone|somebody|one) {_ADVERBS}"
        rf"(?:should|shouldn't|ought|must|gotta) "
        rf"| (?!(?:{_SUBORDINATE}|i) )\S+ should(?:n't)? (?!have )"
    ),
    "need": states(
        rf"{_BEFORE}(?:you|u|ya|we) {_ADVERBS}(?:(?:{'|'.join(w.MODAL)}|'ve) {_ADVERBS})?(?:better"
        r"|(?:needs?|have|has|got) to|want to(?! (?:be|know|understand|feel|believe|have|find|see"
        r"|hear|live|make|give) )) "
    ),
    "option": states(
        rf"{_BEFORE}(?:we {_ADVERBS}(?:can|could|might)|(?:you|u|ya) {_ADVERBS}(?:can|could)"
        r" (?!(?:be|see|hear|have|tell|imagine|get) )\S+) "
    ),
    "in your place": states(
        rf"{_BEFORE}i (?:would|'d|wouldn't) {_ADVERBS}(?!(?:think|love|like|say|imagine|hope"
        r"|guess|appreciate|feel|know|believe|understand|want|enjoy|assume|expect|call|bet|see"
        r"|have|be|rather|not|been|had|prefer|hate|agree) )\w+ "
    ),
    "recommendation": says(
        r" (?:suggest|recommend|recommended|i advise|my advice|suggestion is"
        r"|(?:encourage|urge) you to) "
    ),
    "hedged suggestion": states(
        r"(?:^ | (?=\S+ (?:we|you|just|have|do|to|even|use) ))(?:maybe|perhaps) (?!so |not |and "
        r"|but )(?!(?:\S+ ){0,3}(?:is|are|was|were|'s|'re|did|had) )\S"
    ),
    "proposal": says(
        r" (?:why don't|what if) (?:you|we) (?!(?:\S+ ){0,3}(?:tell|share|describe|explain|telling"
        r"|sharing|describing|explaining) )| why not \S"
        r"| (?:(?:how|what) about|have you (?:tried|considered|thought (?:of|about))) \S+ing "
    ),
    "praise beforehand": states(
        r" (?:would|might|could|may|'d) (?:\S+ )?(?:help to|be (?:\S+ ){0,2}(?:good|nice|great"
        r"|better|best|easier|useful|helpful|interesting|worth|ideal|wise|smart)) "
    ),
    "better course": states(
        r" (?:(?:better|best|hurt) to|(?:is|'s) (?:easier|important) to|better (?:off|if)"
        r"|(?:good|great) idea|best (?:option|bet|way to)|'s best|harm in) "
    ),
    "course named": states(
        r" (?:ways?|steps?|approach|option|strategy|solution|trick|key|thing|bet|move|start)"
        r" (?:(?!be |is |'s )\S+ ){0,7}(?:be|is|'s) (?:\S+ )?to "
        r"| (?:thing|way|what) (?:\S+ ){0,4}do is \S"
    ),
}
NOT_ADVISING: Rules = {
    # It repeats the listener's view, or asks to confirm it: "so you have to obey?".
    "view handed back": lambda sentence: (
        (sentence.mark == "?" and sentence.ask is None and _concludes(sentence))
        or _handed_back(sentence)
    ),
    "encouragement": says(r" (?:take your time|feel free|bear with me) "),
}
