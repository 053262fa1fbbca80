"""Everyday words of the languages that are told from English, and how their words look.

Written from general knowledge; words that English has too, and parts of names, are left out.
"""

import re

from . import words as w

# German, French, Spanish, Italian, Portuguese, Dutch, and a few of each of some others.
_WORDS = w.listed("""
    ich du wir ihr mich dich sich mir dir ihm ihn mein meine dein deine deinen sein seine unser ein
    eine einen einem einer kein keine das dem dass und oder aber denn weil wenn ob wie wer wen wem
    wann warum wieso woher wohin woran wozu womit welche welcher welches welchen ist sind bist seid
    waren wäre wird wurde würde hast haben hatte kann kannst können könnte muss musst soll sollte
    solltest darf möchte weiß weißt glaube glaubst denkst denk meinst sagst sag gib gibt mach macht
    nenne erkläre zeig versuche bedeutet heißt folgt gilt stimmt kommst verstehst nicht nichts noch
    schon nur auch sehr immer nie hier dort jetzt dann damit dafür darüber etwas alles jemand bitte
    danke nein genau richtig falsch vielleicht beispiel frage grund für mit zum zur beim nach aus
    auf über ohne zwischen durch den der vor seiner seinem ihrer ihrem je tu nous vous ils elles mon
    mes tes ses notre votre leur cet cette ces ça cela ceci les une aux est sont suis êtes était
    être avez avons peux peut pouvez pourrais veux voulez dois doit devrais fais fait faire dis
    penses pense crois croit sais sait donne explique regarde essaie prends vient vas allez oui
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
# English has these words, too: they tell nothing.
NEUTRAL = w.listed("""
    a accord alle am come con per non an as brief cite comment compare concrete continue courage
    decide describe die do end explore fare gut had half hat he imagine in is justice land me man
    met mine nature no note observe of on or over phrase plan plus point pour question sale so son
    start tale term test under use want war was we will si soy del dos ser als den der van ve
    dit sole uno di um dir ya el le ha
""")
EVERYDAY = _WORDS - NEUTRAL
# With a capital these begin names, or English sentences.
_NAMES = w.listed(
    "los las ella mai mir noi les che hay un ti ci di lo il que hier como nie zou tus para das mas"
    " ces su ni uma sua ele jak bir nu ho dan tem sim bien vas"
)
AT_THE_START = EVERYDAY - _NAMES
# "D'accord", "l'idée" and "c'est", but neither "D'Arcy" nor "d'you".
ELISION = re.compile(
    r"(?<![^\W_])(?:[cdjlmnstCDJLMNST]|[Qq]u|[Cc]os)['\u2019](?=[aeiouh\u00e0-\u00ff])"
)
ENDINGS = (
    "zione", "zioni", "ción", "ciones", "ção", "ções", "heit", "keit", "heid", "schaft", "lich",
    "lijk", "mente", "dade", "encia", "anza",
)  # fmt: skip
ACCENT = re.compile(r"[\u00df-\u00f6\u00f8-\u00ff\u0101-\u024f\u1e00-\u1eff]")
# Accented words that English has taken in.
BORROWED = w.listed(
    "café cafés naïve naïvely naïveté cliché clichés clichéd façade façades déjà résumé résumés"
    " fiancé fiancée touché sauté soufflé pâté crème entrée exposé protégé rôle voilà vis à née"
    " décor señor señora piñata doppelgänger élan émigré passé blasé tête crêpe première purée"
    " communiqué smörgåsbord führer über jalapeño"
)
