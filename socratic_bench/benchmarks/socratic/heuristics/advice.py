"""Which sentences tell the listener what to do, from the bluntest form to the most polite."""

from . import directives as d
from .grammar import Sentence
from .rule import Rule, any_holds, says_any
from .views import in_a_view, states_any, supposes

_RECOMMENDING = (
    " suggest ", " encourage you to ", " urge you to ", " recommend ", " recommended ",
    " i advise ", " my advice ", " suggestion is ",
)  # fmt: skip
_COMPARING = (
    " better to ", " best to ", " better off ", " better if ", " good idea ", " great idea ",
    " best option ", " best way to ", " 's best ", " is easier to ", " 's easier to ",
    " 's important to ", " is important to ", " best bet ", " harm in ", " hurt to ",
)  # fmt: skip
_ALTERNATIVES = (
    " another option ", " another idea ", " another possibility ", " an alternative ",
    " one option ", " other option ", " if we could ", " other thing to do ",
)  # fmt: skip
_REFLECTING = (
    " sounds like ", " seems like you ", " you said ", " you mentioned ", " you 're saying ",
    " you are saying ", " you told ", " hearing you say ", " hear you say ", " i 'm hearing ",
    " you feel like ", " you felt ", " you 're thinking ", " you were thinking ",
)  # fmt: skip


_BRIEF = 3
_QUESTIONING = frozenset({("where", "does", "that"), ("what", "makes", "you"), ("how", "so")})


def advises(sentence: Sentence) -> bool:
    return any_holds(ADVISING, sentence) and not any_holds(NOT_ADVISING, sentence)


_ENCOURAGING = (
    ("take", "care"), ("keep", "going"), ("go", "on"), ("point", "taken"), ("bear", "with", "me"),
)  # fmt: skip

_TAKE_TIME = ("take", "your", "time")


def _encourages(sentence: Sentence) -> bool:
    """The set phrase is all that is said; "feel free" and "take your time" may go on."""
    said = [clause.body for clause in sentence.clauses if clause.body]
    going_on = any(body[:2] == ("feel", "free") or body[:3] == _TAKE_TIME for body in said)
    return going_on or (len(said) == 1 and said[0] in _ENCOURAGING)


def _is_questioned(sentence: Sentence) -> bool:
    """By "why?" or "where does that come from?"; whoever is told to act may be asked why, too."""
    after = sentence.followed_by
    asked = (after[:1] == ("why",) and len(after) <= _BRIEF) or after[:3] in _QUESTIONING
    return asked and not d.commands(sentence)


def _recommends(sentence: Sentence) -> bool:
    return says_any(sentence, _RECOMMENDING)


def _compares(sentence: Sentence) -> bool:
    return states_any(sentence, _COMPARING)


def _has_alternative(sentence: Sentence) -> bool:
    return says_any(sentence, _ALTERNATIVES)


def _reflects(sentence: Sentence) -> bool:
    return says_any(sentence, _REFLECTING)


ADVISING = (
    Rule(
        name="command",
        because="a base form with no subject tells the listener to act",
        example="Write the equation down again.",
        counterexample="Imagine a town without a law.",
        holds=d.commands,
    ),
    Rule(
        name="late command",
        because="speech puts a condition first and often leaves the comma out",
        example="If the first way fails then go back one step.",
        counterexample="They always try the first way.",
        holds=d.commands_late,
    ),
    Rule(
        name="joint invitation",
        because='"let\'s" decides what comes next for both',
        example="Let's draw a diagram.",
        counterexample="Let's see.",
        holds=d.invites_jointly,
    ),
    Rule(
        name="duty",
        because='"should" says what is to be done, whoever is meant to do it',
        example="The proof should be shorter.",
        counterexample="What should the proof show?",
        holds=d.obliges,
    ),
    Rule(
        name="need",
        because='"you need to" is a duty in milder words',
        example="You might want to check the units.",
        counterexample="They need your units.",
        holds=d.needs,
    ),
    Rule(
        name="option",
        because="whoever names what the listener could do has begun to solve it",
        example="You could start from the other end.",
        counterexample="Choose a start so that you could finish.",
        holds=d.gives_option,
    ),
    Rule(
        name="in your place",
        because="what the speaker would do is offered as an example to follow",
        example="I would ask her first.",
        counterexample="I would like her answer.",
        holds=d.in_your_place,
    ),
    Rule(
        name="recommendation",
        because="the verb itself says that this is advice",
        example="I recommend a long walk.",
        counterexample="I remember a long walk.",
        holds=_recommends,
    ),
    Rule(
        name="hedged suggestion",
        because="a hedge before a bare idea puts it forward to be taken up",
        example="Maybe a smaller number first.",
        counterexample="It was maybe a smaller number.",
        holds=d.hedges,
    ),
    Rule(
        name="proposal",
        because='"why don\'t you" asks for no reason',
        example="Why don't you draw it?",
        counterexample="Why don't you start by telling me about it?",
        holds=d.proposes,
    ),
    Rule(
        name="praise beforehand",
        because='"it would be good" praises what has not been done, so that it will be',
        example="It might also be useful to have a second example.",
        counterexample="It was useful to have a second example.",
        holds=d.praises_beforehand,
    ),
    Rule(
        name="better course",
        because="to call one course the better one is to advise it",
        example="It is better to wait.",
        counterexample="Waiting made it better.",
        holds=_compares,
    ),
    Rule(
        name="course named",
        because="the way, the step or the thing to do is laid out for the listener to take",
        example="One way to start is to draw it.",
        counterexample="One way to start is too slow.",
        holds=d.names_course,
    ),
    Rule(
        name="alternative",
        because="another option is laid out to be chosen",
        example="Another option is the train.",
        counterexample="There is no option.",
        holds=_has_alternative,
    ),
    Rule(
        name="question whether tried",
        because='"have you tried ...ing" is a suggestion in the form of a question',
        example="Have you tried asking them?",
        counterexample="Have you asked them?",
        holds=d.asks_whether_tried,
    ),
)
NOT_ADVISING = (
    Rule(
        name="reflection",
        because="the duty is the listener's own, handed back in other words",
        example="It sounds like you have to choose.",
        counterexample="You have to choose.",
        holds=_reflects,
    ),
    Rule(
        name="somebody's view",
        because="what follows from another's view is there to be looked at",
        example="According to your rule, we should never lie.",
        counterexample="According to plan, we should start.",
        holds=in_a_view,
    ),
    Rule(
        name="hypothesis",
        because="what should follow from a supposition is a prediction",
        example="If that were true, ice should sink.",
        counterexample="If that is too heavy, you should rest.",
        holds=supposes,
    ),
    Rule(
        name="claim in question",
        because="a duty whose reason is asked for next is held up to be examined",
        example="You have to be certain before you move. Why?",
        counterexample="You have to be certain before you move.",
        holds=_is_questioned,
    ),
    Rule(
        name="encouragement",
        because="a set phrase keeps the listener talking, or says goodbye",
        example="Take your time.",
        counterexample="Take your coat.",
        holds=_encourages,
    ),
)
