"""Which kind of question is it? In many tutors' words, in every language that students speak."""

import re
import tomllib
from pathlib import Path

import pytest

from socratic_bench.benchmarks.socratic.scenarios.cues import GENERAL, kind_of
from socratic_bench.benchmarks.socratic.student.kinds import (
    KINDS,
    OF_ANOTHER,
    kinds_asked,
    word_defined,
)

QUESTIONS = {
    "reason": {
        "en": [
            "Why do you think so?",
            "What makes you say that?",
            "What is your reason for that?",
            "How come?",
            "What leads you to that view?",
            "On what do you base that?",
            "What is the strongest reason you have for thinking so about the harbour?",
            "How did you arrive at that?",
            "What lies underneath that idea?",
            "Why is that?",
            "What grounds do you have for it?",
            "What's behind that thought?",
            "Could you say why?",
            "What underlies the way you picture the door?",
            "What led you there?",
            "Why is it the best?",
        ],
        "es": [
            "¿Por qué piensas eso?",
            "¿Qué te hace pensar así?",
            "¿Cuál es la razón?",
            "¿Qué te lleva a decir eso?",
        ],
        "de": [
            "Warum glaubst du das?",
            "Was bringt dich darauf?",
            "Welche Gründe hast du dafür?",
        ],
        "ja": [
            "なぜそう思いますか?",
            "どうしてですか?",
            "その理由は何ですか?",
        ],
    },
    "evidence": {
        "en": [
            "How do you know that?",
            "How can you tell?",
            "How sure are you about the price, and what does that rest on?",
            "What evidence supports your view of bread?",
            "What have you seen yourself that speaks for it?",
            "How could you test what you believe about lambs?",
            "How would a stranger be able to check that?",
            "What would count as proof for it?",
            "How might we find out whether it is so?",
            "What makes you so certain?",
            "What observation supports that?",
            "How do you know it wasn't the oven?",
            "What have you noticed?",
            "How certain are you, from one to ten?",
            "How can you verify or disprove that?",
            "What makes you so sure?",
        ],
        "es": [
            "¿Cómo lo sabes?",
            "¿Qué pruebas tienes de eso?",
            "¿Cómo podrías comprobarlo?",
        ],
        "de": [
            "Woher weisst du das?",
            "Wie könntest du das prüfen?",
            "Woran merkst du das?",
            "Wie sicher bist du dir?",
        ],
        "ja": [
            "どうして分かるんですか?",
            "どうやって確かめますか?",
            "証拠は何ですか?",
        ],
    },
    "source": {
        "en": [
            "Where did you learn that?",
            "Who told you so?",
            "Where does that idea come from?",
            "How did you come to believe that?",
            "What is the source of your picture of the moon?",
            "Where did you first hear about it?",
            "Who taught you that rule?",
            "Where have you got that from?",
            "Which book did you read it in?",
            "Which of your teachers told you that?",
        ],
        "es": [
            "¿Dónde aprendiste eso?",
            "¿De dónde sacas esa idea?",
            "¿Quién te lo dijo?",
        ],
        "de": [
            "Wo hast du das gelernt?",
            "Von wem hast du das gehört?",
            "Wer hat dir das gesagt?",
        ],
        "ja": [
            "それをどこで習いましたか?",
            "誰から聞きましたか?",
        ],
    },
    "example": {
        "en": [
            "Can you give me an example?",
            "What case do you have in mind?",
            "Which example comes to mind when you think of a good friend?",
            "Can you think of a time when that happened?",
            "When was the last time it happened?",
            "Could you describe a situation like that?",
            "Such as?",
            "For instance?",
            "What would be an instance of that?",
            "Tell me about one time you saw it.",
            "What's an example of that?",
            "Describe a time when it went wrong.",
        ],
        "es": [
            "¿Puedes darme un ejemplo?",
            "¿En qué caso lo viste?",
        ],
        "de": [
            "Hast du ein Beispiel dafür?",
            "An welchen Fall denkst du?",
        ],
        "ja": [
            "例えばどんなときですか?",
            "例をあげてもらえますか?",
        ],
    },
    "exception": {
        "en": [
            "Is there a case where that isn't true?",
            "Which exception to that comes to mind?",
            "When would that not hold?",
            "In which case would it turn out to be false?",
            "Which experience of yours fits least with what you say?",
            "What doesn't fit?",
            "What contradicts that?",
            "Can you think of a counterexample?",
            "What in your own experience contradicts it?",
            "Does anything speak against it, and what?",
            "Under what circumstances would that fail?",
            "What speaks against it?",
            "When does it break down?",
            "Where would that not apply?",
            "What is the evidence against it?",
            "When does it stop being true?",
            "Which observation of yours contradicts that?",
            "Is that true in all cases? When not?",
        ],
        "es": [
            "¿Qué excepción se te ocurre?",
            "¿Cuándo no se cumple eso?",
            "¿Qué no encaja?",
        ],
        "de": [
            "Welche Ausnahme fällt dir ein?",
            "Wann stimmt das nicht?",
            "Was passt da nicht dazu?",
        ],
        "ja": [
            "例外はありますか、それは何ですか?",
            "それが当てはまらないのはどんなときですか?",
        ],
    },
    "meaning": {
        "en": [
            "Could you put that in one sentence?",
            "What does that word mean?",
            "What do you mean by fair?",
            "How would you define a friend?",
            "What counts as a lie for you, and what does not?",
            "When you say 'better', what are you pointing to?",
            "In what sense do you mean 'put up a tent'?",
            "How would you describe gravity to someone who has never heard of it?",
            "Which of the words in that matters most, and what does it stand for?",
            "Which part of a promise could you not leave out without changing what you mean?",
            "What exactly is a mood?",
            "Can you put that in other words?",
            "What is a theory, exactly?",
            "What makes something a good reason?",
            "Can you say it differently?",
            "If you had to put the rule into one sentence, how would it read?",
            "How would you explain it to your little sister?",
            "What do you mean when you say you were wrong?",
            'What do you mean by "why not"?',
        ],
        "es": [
            "¿Qué quieres decir con justo?",
            "¿Qué significa para ti perdonar?",
            "¿Cómo definirías la amistad?",
        ],
        "de": [
            "Was meinst du mit gerecht?",
            "Was heisst das für dich, fair?",
            "Wie würdest du das beschreiben?",
        ],
        "ja": [
            "それはどういう意味ですか?",
            "「目上」とは何ですか?",
        ],
    },
    "difference": {
        "en": [
            "What is the difference between the two?",
            "How does that differ from lying?",
            "What distinguishes a price from a cost?",
            "Where do you draw the line between honest and rude?",
            "How would you tell the two apart?",
            "What do those two have in common?",
            "How does the fridge compare with the oven?",
            "What makes the one different from the other?",
            "How are those two similar?",
            "What do the two have in common?",
        ],
        "es": [
            "¿Cuál es la diferencia entre las dos?",
            "¿En qué se diferencian?",
            "¿Dónde está el límite entre los dos?",
        ],
        "de": [
            "Was ist der Unterschied zwischen den beiden?",
            "Worin unterscheiden sie sich?",
            "Wo ziehst du die Grenze?",
        ],
        "ja": [
            "その二つの違いは何ですか?",
            "どこが違いますか?",
        ],
    },
    "consequence": {
        "en": [
            "What follows from that?",
            "What would happen if nobody paid?",
            "If you are right about the bridge, what follows for others?",
            "What would change for you if you were mistaken about the sheep?",
            "What consequences would it have if everybody believed it?",
            "Where does that line of thought lead in the long run?",
            "What does that imply about other cases?",
            "Suppose it rained all year. What then?",
            "What if the shop closed?",
            "If that's true, what else must be true?",
            "How would your days be affected if you took the opposite view?",
            "Which consequence of that troubles you most?",
            "What happens to that idea if the circumstances change?",
            "And what follows from that?",
            "What would be the result?",
            "If everyone did the same, what would the street look like?",
            "What would follow if that were only half true?",
            "Imagine you had no phone. What would you do?",
            "What are the implications?",
            "What might happen next?",
            "Who benefits from this?",
            "What do you think would happen to the plant in the dark?",
            "What would change in the way you see the rest if you were mistaken about it?",
            "What does your view imply for someone in the opposite position?",
            "What if someone took your lemonade?",
        ],
        "es": [
            "¿Qué pasaría si todos hicieran lo mismo?",
            "¿Qué se sigue de eso?",
            "¿Y si estuvieras equivocado?",
            "¿Qué consecuencias tendría?",
        ],
        "de": [
            "Angenommen, es regnet. Was dann?",
            "Was würde passieren, wenn alle so dächten?",
            "Was folgt daraus?",
        ],
        "ja": [
            "もしそうなら、何が起こりますか?",
            "そこから何が言えますか?",
            "そうすると、どうなりますか?",
        ],
    },
    "other_view": {
        "en": [
            "How would someone who disagrees describe the price?",
            "What might a thoughtful critic object?",
            "What would your mother say to that?",
            "From whose point of view would it look different?",
            "What is the strongest case against what you say?",
            "What would you say to a friend who believed the opposite?",
            "What would you see in it if you looked from the opposite side?",
            "What could somebody say against it?",
            "How does your brother see it?",
            "What would a scientist say about it?",
            "How might the other team describe it?",
            "What would the neighbour think of that?",
            "How would you respond to someone who says the opposite?",
            "If I disagreed, what might I say?",
            "What would be a good counter-argument?",
            "What reasons could someone have for the opposite?",
            "What might make someone see it differently?",
            "What would you tell a friend who thinks so?",
        ],
        "es": [
            "¿Qué diría alguien que no está de acuerdo?",
            "¿Cómo lo vería tu hermana?",
            "¿Qué pensaría tu madre?",
        ],
        "de": [
            "Was würde deine Mutter dazu sagen?",
            "Wie würde das jemand sehen, der anderer Ansicht ist?",
        ],
        "ja": [
            "反対の人は何と言うでしょうか?",
            "お母さんならどう思いますか?",
        ],
    },
    "alternative": {
        "en": [
            "What other explanation could there be?",
            "How else could that be understood?",
            "What alternative to that have you ruled out, and on what grounds?",
            "Could there be another reason for it, and which?",
            "In what other way could one look at it?",
            "What else could explain the light?",
            "What other options do you have?",
            "Is there another way to see it? Which one?",
            "What is another way to look at it?",
            "How could that be seen differently?",
        ],
        "es": [
            "¿Qué otra explicación podría haber?",
            "¿De qué otra manera se puede ver?",
        ],
        "de": [
            "Welche andere Erklärung gäbe es?",
            "Wie könnte man das sonst erklären?",
        ],
        "ja": [
            "ほかにどんな説明がありますか?",
            "別の見方はありますか、どんな?",
        ],
    },
    "assumption": {
        "en": [
            "What are you assuming?",
            "What are you taking for granted about the week?",
            "What would have to be true for that to hold?",
            "On what does that depend?",
            "What does that presuppose about other people?",
            "How much of that depends on circumstances?",
            "Whose standard are you assuming when you judge it?",
            "What do you treat as fixed that somebody else would treat as open?",
            "Which assumption would you be least willing to part with, and why?",
            "What must be true for that?",
            "And on what does that depend?",
            "What could we assume instead?",
        ],
        "es": [
            "¿Qué das por hecho?",
            "¿De qué depende eso?",
            "¿Qué supuestos hay detrás?",
        ],
        "de": [
            "Wovon hängt das ab?",
            "Was setzt du dabei voraus?",
            "Was nimmst du als selbstverständlich an?",
        ],
        "ja": [
            "何を前提にしていますか?",
            "何を当たり前だと思っていますか?",
        ],
    },
    "stake": {
        "en": [
            "Why does that matter to you?",
            "What would it cost you to let go of that view?",
            "How do you feel about it?",
            "What are you afraid of?",
            "What would you lose by admitting it?",
            "What is at stake for you?",
            "What worries you most about it?",
            "What do you hope for?",
            "How does that sit with you?",
            "What is important to you in this?",
            "What would you gain by it?",
            "Why is this question important to you?",
            "Which of them is more important to you?",
        ],
        "es": [
            "¿Por qué te importa tanto?",
            "¿Cómo te sientes con eso?",
            "¿Qué perderías?",
        ],
        "de": [
            "Warum ist dir das wichtig?",
            "Wovor hast du Angst?",
            "Was würdest du verlieren?",
        ],
        "ja": [
            "どんな気持ちですか?",
            "何が大切ですか?",
        ],
    },
    "doubt": {
        "en": [
            "What would change your mind?",
            "What would convince you that you were mistaken?",
            "What could make you doubt that?",
            "How has your view of it changed over time?",
            "What evidence would you look for before you changed your mind?",
            "How do you see it today?",
            "Where might you be wrong?",
            "What would it take to make you think again?",
            "What would count as proof that you were mistaken about the sheep?",
            "What part of it are you unsure of?",
            "How has your definition of nine minutes changed?",
            "What would you need to see to give that up?",
            "What makes you less sure?",
            "How might you have described it ten years ago?",
            "How would you know if you were wrong?",
            "How could that be false?",
            "How has your understanding of the week changed since March?",
        ],
        "es": [
            "¿Qué te haría cambiar de opinión?",
            "¿Cómo ha cambiado tu idea?",
            "¿En qué podrías estar equivocado?",
        ],
        "de": [
            "Was würde deine Meinung ändern?",
            "Was könnte dich umstimmen?",
            "Wie hat sich deine Sicht verändert?",
        ],
        "ja": [
            "何があったら考えが変わりますか?",
            "どこが間違っているかもしれませんか?",
        ],
    },
    "more": {
        "en": [
            "Tell me more about that.",
            "What else comes to mind?",
            "Could you say more about the lamp?",
            "Go on.",
        ],
        "es": [
            "Cuéntame más.",
            "¿Qué más?",
        ],
        "de": [
            "Erzähl mir mehr davon.",
        ],
        "ja": [
            "もっと聞かせてください。",
        ],
    },
}
OF_THE_MATTER = [
    "What does the yeast do in there?",
    "Which of the two was it?",
    "What colour was the door?",
    "¿Qué hay en la caja?",
    "Was liegt auf dem Tisch?",
    "箱の中に何がありますか?",
    "What did the boy carry home?",
    "Who was at the door?",
    "How high was the wall?",
    "If velvet had a corner, which planet would elect it?",
]
OF_SOMEBODY_ELSE = [
    "Where did yours stand, and where did Ida's?",
    "So where did the bean get its food from?",
    "Where did you put the jar?",
    "Where does the water come from?",
    "Who is Laras?",
    "Who told Ida?",
    "Why did your brother think so?",
    "Why do they think so?",
    "Why would Leonie say it?",
    "What made your teacher say that?",
    "What did she say, exactly?",
    "Suppose we put your bean on the sill, what would happen?",
    "What will you say to Leonie tomorrow?",
    "\u00bfPor qu\u00e9 lo hizo tu hermana?",
    "\u00bfQu\u00e9 dijo ella?",
    "Warum fand er das unpassend?",
    "Warum glaubt sie das?",
    "Woher hatte die Bohne ihr Essen?",
    "Was hat deine Mutter gesagt?",
    "\u5148\u751f\u306f\u306a\u305c\u305d\u3046\u8a00\u3063\u305f\u306e\u3067\u3057\u3087\u3046\u304b?",
]
OF_THE_STUDENT_S_OWN = {
    "reason": [
        "Why?",
        "Why do you think that she lied?",
        "Why is that so?",
        "Warum glauben Sie das?",
        "¿Por qué crees que tu hermana miente?",
        "なぜ母が怒ると思いますか?",
    ],
    "source": [
        "Where does that picture come from?",
        "Where did you and Ida read about it?",
        "Who told you, and where did you hear it?",
        "Woher kommt dieser Gedanke?",
        "Where do you get your certainty from?",
    ],
}


def test_every_kind_is_asked_for_somewhere_and_has_phrases():
    assert QUESTIONS.keys() == GENERAL.keys()
    assert tomllib.loads(KINDS.read_text(encoding="utf-8"))["phrases"].keys() == GENERAL.keys()


def test_the_documented_kinds_are_those_of_the_program():
    page = (Path(__file__).parents[1] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    table = page.partition("| kind | asked by | such a cue |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| `(.+)` \|$", table, re.MULTILINE)

    assert [kind for kind, _, _ in rows] == [*GENERAL]
    assert [(kinds_asked(asks)[0].name, kind_of(cue)) for _, asks, cue in rows] == [
        (kind, kind) for kind in GENERAL
    ]


@pytest.mark.parametrize(
    ("kind", "asks"),
    [
        (kind, asks)
        for kind, by_language in QUESTIONS.items()
        for some in by_language.values()
        for asks in some
    ],
)
def test_a_question_is_of_the_kind_that_it_asks_for(kind, asks):
    full_width = asks.replace("?", "\uff1f")

    assert kinds_asked(asks)[0].name == kind
    assert kinds_asked(full_width) == kinds_asked(asks)


@pytest.mark.parametrize("asks", OF_THE_MATTER)
def test_a_question_about_a_thing_is_surely_of_no_kind(asks):
    assert not any(one.is_sure for one in kinds_asked(asks))


def test_what_a_tutor_quotes_asks_nothing():
    quoting = 'What do you see in "how do you know, for example"?'

    assert kinds_asked(quoting) == ()
    assert [one.name for one in kinds_asked(f"{quoting} And what follows from that?")] == [
        "consequence"
    ]


@pytest.mark.parametrize("asks", OF_SOMEBODY_ELSE)
def test_somebody_else_s_reason_or_place_is_not_the_student_s(asks):
    assert [one.name for one in kinds_asked(asks)] == [OF_ANOTHER]


@pytest.mark.parametrize(
    ("kind", "asks"), [(kind, asks) for kind, some in OF_THE_STUDENT_S_OWN.items() for asks in some]
)
def test_the_student_s_own_reason_or_source_stays_one(kind, asks):
    assert [one.name for one in kinds_asked(asks)] == [kind]


@pytest.mark.parametrize(
    ("asks", "word"),
    [
        ("What do you mean by light?", "light"),
        ("What exactly is sad for a plant?", "sad"),
        ("What is a theory, exactly?", "a theory"),
        ("What does the word need mean?", "need"),
        ("Was meinst du mit Schuld?", "Schuld"),
        ("\u00bfQu\u00e9 quieres decir con justo?", "justo"),
        ("What do you mean by it?", ""),
        ("What do you mean?", ""),
    ],
)
def test_the_word_that_is_to_be_defined_is_read(asks, word):
    assert word_defined(asks).strip() == word
