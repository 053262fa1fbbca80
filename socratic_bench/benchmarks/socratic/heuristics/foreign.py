"""Everyday words of the languages that are told from English, and how their words look.

Written from general knowledge; words that English has too, and parts of names, are left out.
"""

import re

from . import words as w

_GERMAN = """
    ich du wir ihr mich dich sich euch mir dir ihm ihn ihnen mein meine meinen dein deine deinen
    deiner deinem deines sein seine ihre unser unsere ein eine einen einem einer eines kein keine
    keinen das dem dass und oder aber denn weil wenn ob wie wer wen wem wann warum wieso weshalb
    woher wohin woran worin welche welcher welches welchen wozu wofür womit worüber wovon ist sind
    bist seid waren wäre wird werden wurde würde würdest habe hast haben hatte hätte kann kannst
    können könnte könntest könnten muss musst müssen soll sollst sollte solltest darf willst
    wollen möchte möchtest weiß weißt wissen glaube glaubst glauben denke denkst denken denk
    meinst meint sagst sagen sag sagt gib geben gibt mach mache machst machen macht nimm nehmen
    nenne nenn erkläre erklär beschreibe beschreib zeig zeige stell überlege überleg versuche
    versuch lass geh schau verstehe verstehst verstehen bedeutet bedeuten heißt kommt kommst
    findest finde folgt stimmt nicht nichts noch schon nur auch sehr mehr weiter immer nie hier
    dort jetzt dann danach davon damit dafür darüber daraus dabei daran etwas alles jemand bitte
    danke nein genau richtig falsch vielleicht beispiel gedanke frage antwort grund für mit zum
    zur beim nach aus auf über ohne gegen zwischen durch konkret konkretes konkrete interessant
    zuerst erst deshalb also wirklich viel gerecht
"""
_FRENCH = """
    je tu elle nous vous ils elles mon mes tes ses notre votre leur cet cette ces ça cela ceci les
    une aux est sont suis êtes sommes était être avoir avez avons ont peux peut pouvez peuvent
    pourrais pourrait veux veut voulez dois doit devez devrais fais fait faites faire dis dites
    penses pense pensez crois croit croyez sais sait savez comprends comprenez vois donne donnez
    donner explique expliquez décris raconte regarde regardons prends prenons essaie réfléchis
    réponds signifie vient viens vas allez aller allons oui bonjour bien très trop moins aussi
    encore toujours jamais rien quelque quoi qui que quel quelle quels quelles quand où pourquoi
    combien parce puisque donc alors ensuite mais avec dans vers depuis pendant contre selon
    exemple idée règle vrai vraie ne pas peu même ici là trouves veulent plutôt reste ainsi il moi
    toi lui vraiment bonne sûr autre autres phrase mot mots
"""
_SPANISH = """
    yo tú usted ustedes ella ellos nosotros tus nuestro qué que quién quien cuál cuáles cómo como
    cuándo cuando dónde donde cuánto por porque para pero también más menos muy algo todos esto
    eso ese esa este esta estos esas una unos unas los las del se nos ti contigo conmigo es está
    están estás eres soy somos ser estar fue tengo tienes tiene tener puedo puedes puede podría
    podrías debo debes debe deberías quiero quieres quiere hago haces hace hacer haz digo dices
    dime decir sé sabes sabe saber creo crees cree piensas piensa pienso entiendo entiendes veo
    ves mira significa viene vienes vamos explica explícame cuéntame cuenta continúa sigue imagina
    bien sí gracias hola entonces ahora después antes siempre nunca aquí ejemplo pregunta
    respuesta razón justicia verdad cosa otra otro mejor piénsalo según hay
"""
_ITALIAN = """
    lui noi voi loro mio tuo tua tuoi tue suo sua il gli una della dei delle degli nel nella sul
    sulla dalla alla che cosa quando perché quale quali quanto è sono siamo siete essere ho
    hai abbiamo avete hanno avere fai fatto posso puoi può possiamo potrebbe potresti devi deve
    dovresti voglio vuoi vuole dici dimmi sai sapere penso pensi pensa credi crede capisci intendi
    vedi significa vuol viene vieni spiega spiegami fammi prova immagina considera continua vai
    prendi più meno molto anche ancora sempre mai adesso allora quindi però bene sì esempio favore
    giustizia verità questo questa quello quella questi niente qualcosa tutto ogni nostro poi
    sicuro sicura te ti ci un di lo
"""
_PORTUGUESE = """
    eu você vocês ele ela nós eles meu minha meus minhas teu seu seus suas um uma uns pelo pela ao
    à às que quem qual quais quando onde como por porque é são está estão foi ter tem têm tenho
    pode podem poderia podes posso deve deveria quer queres quero faz fazer faça fale fala diga
    diz dizer dar dê dá sabe sei saber acha achas acho pensa penso entende significa vai vamos
    explique explica conte continua muito mais menos também ainda sempre nunca agora então mas
    para não sim obrigado bem isso isto este esse essa aquilo exemplo ideia justiça verdade
    pergunta resposta razão concreto cada outra outro depois certeza
"""
_DUTCH = """
    ik jij je hij zij ze wij jullie mij jou haar mijn jouw zijn een het dit dat deze wie wat waar
    waarom wanneer welke welk waren wordt worden heb hebt heeft hebben kan kun kunt kunnen moet
    moeten zou zullen wilt weet weten denk denkt denken vind vindt zeg zegt zeggen bedoel bedoelt
    betekent komt kom gaat gaan doet doen geef geeft uit vertel noem beschrijf begrijp bekijk
    probeer laat stel niet niets geen ook nog altijd nooit nu hier daar maar omdat als dus voor
    naar bij onder tussen zonder tegen meer minder veel iets alles goed alsjeblieft voorbeeld
    vraag antwoord reden vandaan eerlijk zo eens
"""
_OTHERS = """
    dlaczego nie jest się myślisz możesz powinieneś varför hvorfor och jag jeg ikke inte tror hvad
    skal mitä miksi että sinä proč jsi zašto misliš miért hogy gondolod sunt crezi pentru için
    değil mengapa bagaimana kamu tidak bakit mga miks kodėl kial det
"""
# English has these words, too: they tell nothing.
NEUTRAL = w.listed("""
    a accord alle am come con per non an as brief cite comment compare concrete continue courage
    describe die do end explore fare gut had half hat he hier imagine in is justice land me man
    met mine nature no note observe of on or over phrase plan plus point pour question sale so son
    start tale term test une under use want war was we will
""")
_SHARED = w.listed(
    "um ve dir del du eu yo se di soy ho ser also er more me den mon sole dos uno dit phrase hay"
    " justice"
)
_LANGUAGES = (_GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH, _OTHERS)
EVERYDAY = frozenset(word for text in _LANGUAGES for word in text.split()) - _SHARED - NEUTRAL
# With a capital these begin names, or English sentences.
_NAMES = w.listed(
    "los las del ella mai mara sai kim sara jan noi mia les bei hans mir ora rene bien ali wie "
    "jou che hay un te ti ci di lo il du que uns kan hier die como mi sao kun ela ana eva nie "
    "zou dar sei tus para das ada mas ces uma sua"
)
AT_THE_START = EVERYDAY - _NAMES
# "D'accord", "l'idée" and "c'est", but neither "D'Arcy" nor "d'you".
ELISION = re.compile(
    r"(?<![^\W_])(?:[cdjlmnstCDJLMNST]|[Qq]u|[Cc]os)['\u2019](?=[aeiouh\u00e0-\u00ff])"
)
ENDINGS = (
    "zione", "zioni", "ción", "ciones", "ção", "ções", "heit", "keit", "heid", "schaft", "lijk",
    "amente", "dade",
)  # fmt: skip
ACCENT = re.compile(r"[\u00df-\u00f6\u00f8-\u00ff\u0101-\u024f\u1e00-\u1eff]")
# Accented words that English has taken in.
BORROWED = w.listed(
    "café cafés naïve naïvely naïveté cliché clichés clichéd façade façades déjà résumé résumés"
    " fiancé fiancée über touché sauté sautéed soufflé soufflés pâté crème brûlée entrée entrées"
    " exposé protégé protégée rôle rôles voilà vis à née décor señor señora jalapeño piñata"
    " doppelgänger coöperate reëlect élan émigré passé blasé risqué outré raison tête crêpe crêpes"
    " papier mâché première purée piqué attaché communiqué roué façon señores smörgåsbord führer"
)
