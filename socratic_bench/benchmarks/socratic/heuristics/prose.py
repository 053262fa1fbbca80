"""Extracts the writer's own prose from Markdown, and tells whether it is plainly not English.

Code, addresses and quotations are left out. Every step reads its text once from left to right, and
every pattern is bounded. In doubt a text is English, since most turns are short. The word lists are
written from general knowledge, without words that English has too, and parts of names.
"""

import re
from collections.abc import Iterator, Sequence

from . import words as w

_HOLE = f" {w.HOLE} "
_MARKS = str.maketrans({
    "\uff1f": "?", "\u061f": "?", "\u2047": "??", "\u203d": "?!", "\u2048": "?!", "\uff01": "!",
    "\u00bf": " ", "\u00a1": " ", "\u00a0": " ", "\u2026": "...", "\r": "\n",
})  # fmt: skip
_WIDE_END = re.compile(r"(?<=[\uff1f\uff01\u061f])(?=\w)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_BULLET = re.compile(r"\s*(?:[-*+\u2022]|\(?(?:\d{1,3}|[A-Za-z])[.)])\s+")
_APART = re.compile(r" {0,3}>|[\s|:=*_-]*$")
_INDENTED_CODE = re.compile(r"(?: {4}|\t).*(?:[;{}=]|\):?$)")
_BOLD_QUESTION = re.compile(r"\s*(?:\*\*|__)[^*_\n]{1,200}\?(?:\*\*|__):?(?=\s|$)")
# A question to the listener is no title.
_ADDRESSED = re.compile(r"\b(?:you|your|yours|yourself|me|us|let's)\b", re.IGNORECASE)
_TICKS = re.compile(r"(?<!`)(`+)(?!`)[^\n]{1,1000}?(?<!`)\1(?!`)")
_URL = re.compile(r"(?:https?://|www\.)\S*[\w/=&#%]")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\](?:\([^()\s]*\)|\[[^\[\]\n]*\])")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>")
_TERNARY = re.compile(r"[=<>&|][^?\n]{0,60} \? [^?:\n]{1,60} : ")
_DOUBT = re.compile(r"[(\[]\s?[?!]+\s?[)\]]")
_EMPHASIS = re.compile(r"\*+|(?<!\w)_+(?=\w)|(?<=[\w.?!])_+(?!\w)|~~")
# Between marks of one kind, straight or curly; an apostrophe in a word is no mark.
_QUOTED = re.compile(
    r"(?<!\w)(?:\"(?!\s)([^\"]{1,2000})(?<!\s)\"|\u201c([^\u201c\u201d]{1,2000})\u201d"
    r"|\u00ab([^\u00ab\u00bb]{1,2000})\u00bb|\u2018((?:[^\u2018\u2019]|(?<=\w)\u2019(?=\w)){1,2000})"
    r"\u2019|'(?!\s)((?:[^']|(?<=\w)'(?=\w)){1,2000})(?<!\s)')(?!\w)"
)
# Words before a quoted question by which the speaker makes it their own.
_POSES = re.compile(
    r"\b(?:question|consider|yourself|puzzle|ask you|i ask|i'd ask|i would ask|think about|ponder)"
    r"[^.?!]{0,40}$",
    re.IGNORECASE,
)

# German, French, Spanish, Italian, Portuguese, Dutch, and a few of each of some others.
_FOREIGN_WORDS = w.listed("""
    ich du wir ihr mich dich sich mir dir ihm ihn mein meine dein deine deinen sein seine unser ein
    eine einen einem einer kein keine das dem dass und oder aber denn weil wenn ob wie wer wen wem
    wann warum wieso woher wohin woran wozu womit welche welcher welches welchen ist sind bist seid
    waren wäre wird wurde würde hast haben hatte kann kannst können könnte muss musst soll sollte
    solltest darf möchte weiß weißt glaube glaubst denkst denk meinst sagst sag gib gibt mach macht
    nenne erkläre zeig versuche bedeutet heißt folgt gilt stimmt kommst verstehst nicht nichts noch
    schon nur auch sehr immer nie hier dort jetzt dann damit dafür darüber etwas alles jemand bitte
    danke nein genau richtig falsch vielleicht beispiel frage grund für mit zum zur beim nach aus
    auf über ohne zwischen durch den der vor seiner seinem ihrer ihrem je tu nous vous ils elles
    mon mes tes ses notre votre leur cet cette ces ça cela ceci les une aux est sont suis êtes
    était être avez avons peux peut pouvez pourrais veux voulez dois doit devrais fais fait faire
    dis penses pense crois croit sais sait donne explique regarde essaie prends vient vas allez oui
    bonjour bien très aussi encore toujours jamais rien quoi qui que quel quelle quelles quand où
    pourquoi combien parce puisque donc alors mais avec dans vers depuis pendant contre selon
    exemple vrai ne pas peu même ici là moi toi lui vraiment autre mot yo tú usted ella ellos
    nosotros tus qué quién quien cuál cómo como cuándo cuando dónde donde cuánto por porque para
    pero también más muy algo todos esto eso ese esa este esta las los del nos está estás eres ser
    fue tengo tienes tiene puedo puedes puede podría debes debe deberías quieres quiere haces hace
    dices dime sabes sabe crees cree piensas piensa mira significa viene explica explícame continúa
    sí gracias hola entonces ahora siempre nunca aquí ejemplo pregunta respuesta razón otra otro
    mejor según hay si digo tanto voy ni su el ha noi voi loro mio tuo tua suo sua il gli una della
    dei delle nel nella sul alla che cosa quando perché quale quali quanto è sono siamo essere ho
    hai hanno avere fai fatto posso puoi può dovresti deve voglio vuoi dici dimmi sai penso pensi
    credi vedi vuol spiega dammi fammi prova più meno molto anche ancora sempre mai allora quindi
    però bene sì esempio questo questa quello niente tutto poi di un lo ti ci eu você vocês ele ela
    meu minha teu seu seus uma um pelo ao à às quem qual quais onde é são estão foi tem têm pode
    podes deveria quer faz fale diga dizer acha achas acho pensa muito menos também então mas não
    sim obrigado bem isso isto aquilo vamos ik jij hij zij ze wij jullie mij jou mijn jouw zijn een
    het dit dat deze wat waar waarom wanneer welke wordt heb hebt heeft kun kunt moet zou wilt weet
    denkt vind zegt bedoel betekent kom komt gaat doet geef uit leg niet niets geen ook nog altijd
    nooit nu maar omdat als dus voor naar bij tussen zonder iets goed voorbeeld vraag zo eens van
    dlaczego jest się że czy jak bir ve bu için değil của không yang dan tidak mengapa kamu och att
    är som inte varför hvorfor jag jeg ikke dig tror hvad skal og det så quid tibi mitä miksi että
    sinä proč jsi zašto što miért hogy sunt pentru bakit mga kodėl kial
""")
# English has these words, too, so they are no evidence.
_NEUTRAL = w.listed(
    "a accord alle am come con per non an as brief cite comment compare concrete continue courage"
    " decide describe die do end explore fare gut had half hat he imagine in is justice land me"
    " man met mine nature no note observe of on or over phrase plan plus point pour question sale"
    " so son start tale term test under use want war was we will si soy del dos ser als den der"
    " van ve dit sole uno di um dir ya el le ha"
)
_EVERYDAY = _FOREIGN_WORDS - _NEUTRAL
# With a capital these begin names, or English sentences.
_CAPITALISED_NAMES = w.listed(
    "los las ella mai mir noi les che hay un ti ci di lo il que hier como nie zou tus para das"
    " mas ces su ni uma sua ele jak bir nu ho dan tem sim bien vas"
)
_AT_THE_START = _EVERYDAY - _CAPITALISED_NAMES
# "D'accord", "l'idée" and "c'est", but neither "D'Arcy" nor "d'you".
_ELISION = re.compile(
    r"(?<![^\W_])(?:[cdjlmnstCDJLMNST]|[Qq]u|[Cc]os)['\u2019](?=[aeiouh\u00e0-\u00ff])"
)
_FOREIGN_ENDINGS = (
    "zione", "zioni", "ción", "ciones", "ção", "ções", "heit", "keit", "heid", "schaft", "lich",
    "lijk", "mente", "dade", "encia", "anza",
)  # fmt: skip
_ACCENT = re.compile(r"[\u00df-\u00f6\u00f8-\u00ff\u0101-\u024f\u1e00-\u1eff]")
# Accented words that English has taken in.
_BORROWED = w.listed(
    "café cafés naïve naïvely naïveté cliché clichés clichéd façade façades déjà résumé résumés"
    " fiancé fiancée touché sauté soufflé pâté crème entrée exposé protégé rôle voilà vis à née"
    " décor señor señora piñata doppelgänger élan émigré passé blasé tête crêpe première purée"
    " communiqué smörgåsbord führer über jalapeño"
)
_WORD = re.compile(r"[^\W\d_]+")
# Characters that are read: a long text shows its language early.
_SAMPLE = 2000
ENGLISH = w.listed(
    "the a an and or but of to in on at for with is are was were be do does did has have it you i"
    " we they he she that this what why how not if so my your can could would will should there as"
    " by from about me"
)
_EVIDENCE = w.listed(
    "when where who whose which than then their them our some any more because between both into"
    " been being think just only now yes please right wrong very much many each every other"
    " another first two three out had these those know"
)
_ENDINGS = ("ing", "ed", "ly", "ght")
# Foreign words, and the English ones which no other language has.
_ENGLISH_ONLY = (
    ENGLISH | _EVIDENCE | w.VERB | w.LEAD | w.PRONOUN | w.PREPOSITION | w.PLAIN_AUXILIARY
) - (_EVERYDAY | _NEUTRAL | {"i"})
_SUFFIXED = 6
_ENOUGH = 6
_VOWELS = ("a", "i", "o", "u")
# Scripts that English is never written in; letters beyond these count as Latin. Compiled at its
# first use: most runs never meet a letter beyond ASCII.
_OTHER_SCRIPT = (
    r"[\u0370-\u03ff\u0400-\u052f\u0530-\u058f\u0590-\u05ff\u0600-\u06ff\u0700-\u1cff"
    r"\u1f00-\u1fff\u2c80-\u2dff\u3040-\u30ff\u3100-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\ufb1d-\ufdff\ufe70-\ufeff\uff66-\uff9f\U00020000-\U0002fa1f]"
)


def blocks(text: str) -> Iterator[str]:
    """Paragraphs, list items and table cells; a heading only if no text follows to answer it."""
    heading = title = ""
    for kind, lines in _joined(_WIDE_END.sub(" ", text).translate(_MARKS)):
        prose = _own_words(lines)
        if title and not (kind == "text" and _answers(prose)):
            yield title
        heading, title = (prose if kind == name else "" for name in ("heading", "title"))
        if kind == "text":
            yield prose
    yield from filter(None, (title, heading))


def _answers(block: str) -> bool:
    """Whether the block answers the title: a statement that does not address the listener."""
    first, _, remainder = block.strip().partition(" ")
    hint = first.lower().strip(".,:;!") in w.VERB or "?" in block or _ADDRESSED.search(block)
    return remainder != "" and not hint


def _joined(text: str) -> Iterator[tuple[str, str]]:
    """Join the lines of a paragraph; headings, titles and list items stay separate."""
    paragraph: list[str] = []
    for kind, line in _lines(text):
        if kind != "more" and paragraph:
            yield "text", " ".join(paragraph)
            paragraph = []
        if kind in {"more", "item"}:
            paragraph.append(line)
        elif kind != "end":
            yield kind, line
    if paragraph:
        yield "text", " ".join(paragraph)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in _without_code(text.splitlines()):
        if _APART.match(line):
            yield "end", ""
        elif _HEADING.match(line):
            yield "heading", line.strip(" #\t")
        elif line.lstrip()[0] == "|":
            yield from (("text", cell.strip()) for cell in line.split("|") if cell.strip())
        elif bullet := _BULLET.match(line):
            yield from _titled("item", line[bullet.end() :])
        else:
            yield from _titled("more", line)


def _titled(kind: str, line: str) -> Iterator[tuple[str, str]]:
    """A bold question at the head of a line, which what follows may answer."""
    bold = _BOLD_QUESTION.match(line)
    if not bold or _ADDRESSED.search(bold[0]):
        yield kind, line
        return
    yield "title", bold[0].strip()
    if remainder := line[bold.end() :].strip():
        yield "item", remainder


def _without_code(lines: list[str]) -> Iterator[str]:
    """Fenced code, an unclosed fence to the end, and indented code become blank lines.

    Indented lines are code after a blank line, as in Markdown, but not in a list, where they
    continue an item, and not before any text, since a whole reply may be indented.
    """
    fence, blank, code_next = "", True, False
    for line in lines:
        mark, bullet = _FENCE.match(line), _BULLET.match(line)
        indented = line.startswith(("    ", "\t"))
        if fence:
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
        elif mark and "`" not in line[mark.end() :]:
            fence = mark[1]
            yield ""
        elif blank and indented and ((code_next and not bullet) or _INDENTED_CODE.match(line)):
            yield ""
        else:
            yield line
            blank = not line.strip()
            code_next = not bullet and (code_next or not (blank or indented))


def _own_words(block: str) -> str:
    if "`" in block:
        block = _TICKS.sub(_HOLE, block)
    block = block.replace("\u2019", "'") if "\u2018" not in block else block
    if "://" in block or "www." in block:
        block = _URL.sub(_HOLE, block)
    if "[" in block:
        block = _LINK.sub(r"\1", block)
    if "<" in block:
        block = _TAG.sub(" ", block)
    if "?" in block:
        block = _DOUBT.sub(" ", _TERNARY.sub(_HOLE, block) if " ? " in block else block)
    return _QUOTED.sub(_posed, _EMPHASIS.sub("", block)).replace("\u2019", "'")


def _posed(quotation: re.Match[str]) -> str:
    """The quotation's words if the speaker poses them, or if all is quoted; else a hole."""
    block, (start, end) = quotation.string, quotation.span()
    inner = quotation[quotation.lastindex or 0]
    whole = not (block[:start].strip() if start <= 1 else block) and not block[end:].strip(" .")
    if whole or _POSES.search(block, max(0, start - 80), start):
        return f" {inner} "
    after = block[end : end + 3].strip()
    ends = inner[-1] in ".?!" and (not after or (block[end].isspace() and not after[0].islower()))
    return _HOLE + (". " if ends else "")


def is_foreign(text: str, prose: Sequence[str]) -> bool:
    """Whether most letters of the text, or words of its prose, are of another language."""
    sample = " ".join(prose)[:_SAMPLE]
    words = _WORD.findall(sample)
    if not sample.isascii() and _other_script(words):
        return True
    english = sum(word == "I" or _tells_english(word.lower()) for word in words)
    foreign = len(_ELISION.findall(sample)) + _n_foreign(words)
    marked = "\u00bf" in text[:_SAMPLE] or "\u00a1" in text[:_SAMPLE]
    return foreign + 2 * marked > 2 * english or _without_english(words, english)


def _n_foreign(words: Sequence[str]) -> int:
    n_foreign = 0
    after_last = words[-1] if len(words) > 1 else "a"
    for word, following in zip(words, [*words[1:], after_last], strict=False):
        # A capitalised word may be a name, unless a word in lower case or none follows it.
        if word.islower():
            n_foreign += _tells_foreign(word)
        elif word.istitle() and following.islower():
            n_foreign += word.lower() in _AT_THE_START
    return n_foreign


def _tells_foreign(word: str) -> bool:
    if word in _EVERYDAY or (len(word) > _SUFFIXED and word.endswith(_FOREIGN_ENDINGS)):
        return True
    return not word.isascii() and bool(_ACCENT.search(word)) and word not in _BORROWED


def _tells_english(word: str) -> bool:
    if word in _NEUTRAL or word in _EVERYDAY:
        return False
    return word in _ENGLISH_ONLY or word.removesuffix("s") in w.VERB or word.endswith(_ENDINGS)


def _without_english(words: Sequence[str], english: int) -> bool:
    """Whether it lacks English words and, unlike a list of nouns, has foreign signs."""
    plain = [word for word in words if len(word) > 1 and word.islower() and word != w.HOLE]
    if len(set(plain)) < _ENOUGH or english * 10 >= len(plain):
        return False
    n_foreign = sum(word in _EVERYDAY or not word.isascii() for word in plain)
    voiced = sum(word.endswith(_VOWELS) for word in plain)
    return n_foreign * 8 >= len(plain) or voiced * 3 >= len(plain)


def _other_script(words: Sequence[str]) -> bool:
    """Single letters of an alphabet are symbols, as in a formula; single ideographs are words."""
    letters = sum(len(word) for word in words)
    other = sum(
        len(re.findall(_OTHER_SCRIPT, word)) for word in words if len(word) > 1 or word >= "\u0900"
    )
    return other > letters / 2
