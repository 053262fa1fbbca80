"""The words of a question that draw something out of a student."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache

from msgspec import Struct

from socratic_bench.benchmarks.socratic.scenarios.wording import is_unspaced

# Questions that fit any talk, by what they ask for. A cue that is one of them stands for all of its
# kind, and draws out less surely than a cue of the matter.
GENERAL = {
    "reason": """
why|reason*|what makes you|because|how come|ground*|justif*|rest on|rests on|behind|based on
|underl*|on what|arrive at|warum|wieso|weshalb|grund|gründe|begründ*|por qué|razón|porque
|te hace pensar|le hace pensar|razones|se basa|te basas|worauf|wie kommst du|wie kommen sie
|なぜ|どうして|理由|なんで|根拠|基づ""",
    "evidence": """
how do you know|how can you tell|how sure|sure|certain*|evidence|prove|proof|observ*|seen
|experience*|check*|test|tested|support*|convince*|notice|find out|sicher|beleg*|beweis*
|erfahrung*|beobacht*|prüf*|überprüf*|woran|woher weißt|woher weisst|woher wissen|gesehen
|überzeug*|cómo sabe|cómo sabes|cómo lo sabe*|segur*|prueba*|evidencia*|experiencia*|comprob*
|demuestr*|convenc*|has visto|ha visto|確か|証拠|経験|観察|確信|試せ|試し|見たこと|裏付け""",
    "source": """
learn*|heard|found out|source|come across|come from|comes from|first time|who told|where did
|gelernt|gehört|woher|quelle|zum ersten mal|aufgeschnappt|aprend*|de dónde|fuente*|primera vez
|quién le|oíste|どこで|誰から|だれから|習|教わ|出どころ|初めて聞|きっかけ""",
    "example": """
example*|for instance|a case|which case|cases|situation*|instance|occasion|comes to mind|last time
|time when|picture|beispiel*|ein fall|einen fall|welcher fall|welchem fall|welchen fall|fälle
|fällt dir ein|fällt ihnen ein|ejemplo*|caso|casos|例えば|たとえば|例を|例が|実例|具体
|どんなとき""",
    "exception": """
exception*|always|every case|ever|apply|applies|contradict*|fits least|fits worst|in general
|circumstances change|immer|ausnahme*|widerspr*|jedes mal|siempre|excepci*|contradi*|いつも|例外
|矛盾|必ず""",
    "meaning": """
mean|means|mean by|meaning|define*|definition|describe*|in what sense|one sentence|explain*|word
|words|call it|counts as|count as|what exactly|meinst|meinen sie|bedeutet|heißt|heisst|definier*
|wort|erklär*|beschreib*|verstehst du unter|verstehen sie unter|gemeint|begriff*
|significa*|palabra*|explic*|describ*|definir*|definición|quieres decir|quiere decir|entiendes por
|entiende por|qué llama*|意味|とは何|とはどう|定義|説明する|説明して|一言|どんな言葉|言葉にする
|どういうこと""",
    "difference": """
distinguish*|differ*|difference|compare*|similar|unlike|the line between|unterschied*|unterscheid*
|vergleich*|ähnlich*|diferen*|compar*|distingu*|distint*|parecid*|違い|どう違|比べ|区別|似て|境目""",
    "consequence": """
what if|what would|what happens|suppose|imagine|follow|follows|consequence*|lead|leads|imply|implies
|affect*|result|turn out|then what|if you|long run|was wäre|angenommen|stell dir|stellen sie sich
|folg*|passieren|würde sich ändern|wenn alle|langfristig|vorstell*|auswirk*|y si|imagin*|supon*
|pasaría|ocurriría|sucedería|cambiaría|si todos|a la larga|consecuencia*|もし|仮に|想像|どうなる
|どうなり|結果|起こ""",
    "other_view": """
other side|opposite side|someone else|somebody else|someone who|disagree*|opposite|critic*|object
|stranger|others|point of view|other people|objection*|case against|friend who|mom say|mum say
|dad say|mother say|father say|friend say|he say|she say|they say|gegner|anders sieht|gegenteil
|einwand|kritik*|jemand|andere sagen|andere denken|für andere|gegenseite|anderer meinung
|widersprechen|otra persona|alguien|otros|los demás|contrari*|en desacuerdo|crític*|objetar*
|objeción|反対|ほかの人|他の人|誰か|反論|批判|違う考え""",
    "alternative": """
alternative*|another way|different way|look different|other explanation|how else|anders erklären
|andere erklärung|anders sehen|anders verstehen|sonst noch|otra explicación|otra manera|otra forma
|otro modo|alternativa*|ほかの説明|他の説明|別の|違う見方""",
    "assumption": """
assum*|take for granted|taking for granted|presuppos*|depend*|have to be true|must be true|fixed
|standard|voraus|annahme*|nimmst du an|nehmen sie an|hängt|abhäng*|davon aus|ausgegangen|maßstab
|massstab
|selbstverständlich*|supuesto*|das por|da por|por sentado|por hecho|前提|当たり前だと思って|決めつけ
|思い込|次第""",
    "stake": """
feel*|matter*|important|cost|costs|trouble*|worr*|want|hope|value|let go|care|afraid|surpris*
|fühl*|gefühl*|wichtig|angst|hoff*|wünsch*|sorge*|befürcht*|kostet|kosten|verlier*|loslass*|sient*|sentir*
|import*|miedo|duele|cuest*|costaría|perder|preocup*|気持ち|大切|大事|怖|不安|心配|失う|失い|手放""",
    "doubt": """
change your mind|changed|doubt*|mistaken|wrong|false|less sure|give up|reconsider|zweif*|falsch
|irrst|irren|irrtum*|geirrt|umstimm*|meinung ändern|duda*|equivoc*|cambiar de opinión
|cambiar de idea|tendría que pasar|müsste passieren|fals*|疑|間違|まちが|考えが変|考えを変""",
    "more": """
what else|what about|tell me|say more|more about|think|thought|believe|know|how|erzähl*|was noch
|cuénteme|cuéntame|hábleme|qué más|もっと|詳しく""",
}
_PART = re.compile(r"[^\W_]+(?:['-][^\W_]+)*\*?")
_GAP = r"\W+"


class Cues(Struct, frozen=True):
    """Cues made ready: the words of the matter, and the general kinds."""

    of_the_matter: re.Pattern[str] | None
    kinds: frozenset[str]

    def matching(self, text: str) -> frozenset[str]:
        """The different words of the matter that the text has."""
        if self.of_the_matter is None:
            return frozenset()
        found = self.of_the_matter.finditer(straight(text))
        return frozenset(one[0].casefold() for one in found)


@lru_cache(maxsize=4096)
def ready(cues: tuple[str, ...]) -> Cues:
    of_the_matter = [cue for cue in cues if not is_general(cue)]
    return Cues(pattern_of(tuple(of_the_matter)) if of_the_matter else None, kinds_of(cues))


def kinds_of(cues: Sequence[str]) -> frozenset[str]:
    """The general kinds among cues."""
    return frozenset(kind for cue in cues if (kind := kind_of(cue)) is not None)


def can_match(cue: str) -> bool:
    """Whether it is made of words with blanks between them, each with a `*` behind it or not."""
    return is_unspaced(cue) or _parts(cue) == straight(cue).casefold().split()


def matches(cue: str, question: str) -> bool:
    """Whether the words of the cue stand in the question one after the other."""
    text, first = straight(question), "".join(straight(cue).split()[:1]).strip("*")
    # A pattern takes a hundred times as long, and finds no more here.
    if text.isascii() and first.isascii() and first.casefold() not in text.casefold():
        return False
    return bool(pattern_of((cue,)).search(text))


def is_general(cue: str) -> bool:
    return kind_of(cue) is not None


def kind_of(cue: str) -> str | None:
    """Which kind of general question the cue is one of; `None` if it is of the matter."""
    return _kinds().get(straight(cue).casefold().rstrip("*"))


def straight(text: str) -> str:
    return text.replace("\u2019", "'")


@cache
def _kinds() -> dict[str, str]:
    by_kind = words_by_kind().items()
    return {word.rstrip("*"): kind for kind, words in by_kind for word in words}


@cache
def words_by_kind() -> dict[str, tuple[str, ...]]:
    """What asks for each kind, in the words of cues."""
    return {kind: tuple(words.replace("\n", "").split("|")) for kind, words in GENERAL.items()}


@lru_cache(maxsize=4096)
def pattern_of(cues: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(_written, cues)), re.IGNORECASE)


def _written(cue: str) -> str:
    if is_unspaced(cue):
        return re.escape(cue.strip("* "))
    words = [re.escape(part.rstrip("*")) + r"\w*" * part.endswith("*") for part in _parts(cue)]
    return rf"(?<!\w){_GAP.join(words)}(?!\w)"


def _parts(cue: str) -> list[str]:
    return _PART.findall(straight(cue).casefold())
