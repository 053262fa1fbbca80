"""The closed classes of English words, and the verbs that commonly open a command.

Written from general knowledge of the language: no list was counted out of labelled data.
"""


def listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What takes the place of code, an address or a quotation: a noun that no rule knows.
HOLE = "quux"
WH = listed("what why how who whom whose which when where what's whatever")
PLAIN_AUXILIARY = listed(
    "do does did is are was were am have has had can could will would shall should may might must"
    " 's 're 've 'd 'll 'm ain't"
)
NEGATED = listed(
    "don't doesn't didn't isn't aren't wasn't weren't haven't hasn't hadn't can't cannot couldn't"
    " won't wouldn't shan't shouldn't mightn't mustn't needn't ain't"
)
AUXILIARY = PLAIN_AUXILIARY | NEGATED
MODAL = listed("can could will would shall should may might must 'd 'll ought")
PRONOUN = listed(
    "i you he she it we they there this that these those someone somebody anyone anybody everyone"
    " everybody anything everything something nothing one ya u"
)
DETERMINER = listed(
    "a an the my your his her its our their any some all each every no both either neither most"
    " many another such"
)
SUBJECT_START = PRONOUN | DETERMINER
OBJECT = listed("me him her it us them you yourself yourselves this that these those one")
YOU = listed("you u ya")
SPEAKERS = listed("i we")
PERSON = listed("you he she they we i it there")
WHETHER = listed("if whether")
# What turns the statement before it into a question that wants a yes.
TAGS = listed("right correct huh eh innit no yeah yes true")
ADVERB = listed(
    "just always also really probably actually still definitely maybe perhaps all both simply"
    " only then certainly even guys"
)
PREPOSITION = listed(
    "about above across after against along among around as at before behind below between beyond"
    " by despite during except for from in inside into like near of off on onto out over past per"
    " since than through throughout to toward towards under until up upon via with within without"
)
CONJUNCTION = listed("and or but nor yet so because although though while if unless whereas")
# Words that may stand before what a clause really says.
LEAD = listed(
    "so and but well okay ok right now then oh yeah yes yep no nope alright also actually great"
    " good cool sure like because or hi hey hello anyway again first second third next finally"
    " lastly instead otherwise honestly personally basically plus alternatively additionally"
    " however therefore thus hence fine perfect exactly wow ah aha gotcha nice interesting"
    " excellent correct true please just maybe perhaps only simply definitely certainly absolutely"
    " really seriously always never ever still either edit ps btw fyi imo imho tip gosh huh"
    " meanwhile even mhm uh-huh mm-hmm generally usually ultimately"
)
LEAD_PAIRS = frozenset(
    {("i", "mean"), ("you", "know"), ("i", "guess"), ("i", "think"), ("i", "suppose"),
     ("all", "right"), ("of", "course"), ("at", "least"), ("for", "example"), ("in", "fact"),
     ("got", "it"), ("thank", "you"), ("i", "see")}
)  # fmt: skip
FILLER = listed("um uh er erm hmm hm mm mmm ah eh")

# Base forms that open a command. Nouns of the same spelling are told apart by what follows.
VERB = listed("""
    accept acknowledge act adapt add address adjust admit adopt advise aim allow analyze answer
    anticipate apologize apply appreciate approach argue arrange ask assume attend avoid bake
    balance be become beg begin behave believe bend block book bother break breathe bring browse
    brush budget build buy calculate call calm cancel carry catch cease celebrate challenge change
    chat check chill choose circle claim clarify clean clear close combine come communicate compare
    complete compliment compute concentrate confirm confront connect consider consult contact
    continue control convert convince cook cooperate copy correct count cover create cut deal
    debate decide decrease define delay delete demand describe design determine develop discuss
    distract divide document double download draw dress drink drive drop earn eat educate email
    emphasize enable encourage end engage enjoy ensure enter establish estimate evaluate examine
    exclude exercise expect experiment explain explore expose express extend face factor feel
    figure file fill find finish fix focus fold follow force forget form get give go google grow
    guess guide handle hang heat help hide highlight hit hold host identify ignore imagine improve
    include increase insert insist interview introduce invest investigate invite involve join judge
    jump keep kick know lead learn leave let lie lift limit line listen live locate lock log look
    lose lower maintain make manage map mark match measure meditate meet memorize mention modify
    monitor move multiply name note notice observe offer open order organize pass pause pay pick
    place plan plant play point practice prepare present press pretend prevent print prioritize
    proceed process promise propose protect provide pull push put quit quote raise reach react read
    realize recall recheck recognize recommend reconsider record redirect reduce refer reflect
    reframe refuse reinforce reject relax rely remember remind remove rent repeat rephrase replace
    reply report request require research reserve reset resolve respect respond rest restart
    restore rethink retry return reuse reverse review revisit reward rewrite ride ring round run
    save say schedule score search see seek select sell send separate serve set share show sign
    simplify sit skip sleep slow solve sort speak spend split stand start state stay step stick
    stop store stretch study substitute subtract suggest summarize supply support suppose swap
    switch tackle take talk teach tell test text thank think throw tie touch trace track train
    transfer translate travel treat trust try turn type understand upload use vary verify view
    visit vote wait wake walk wash watch wear weigh wish work worry write
""")
# "Suppose you could fly" asks for a thought, and what follows belongs to that thought.
SUPPOSING = listed("suppose assume imagine picture say pretend")
# What cannot follow a command's verb: then the first word was a noun, or a clause without subject.
NOT_AFTER_COMMAND = listed(
    "is are was were am 's 've has had can could will would should may might must does did of"
    " isn't aren't wasn't weren't doesn't didn't can't couldn't won't wouldn't i he she we they"
)


def is_adverb(word: str) -> bool:
    """Yes to "gently", no to "fly" and "multiply"."""
    return len(word) > len("ally") and word.endswith("ly") and word not in VERB
