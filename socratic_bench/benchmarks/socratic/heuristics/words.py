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
    "i you he she it we they there this that these those someone somebody anyone anybody"
    " everyone everybody anything everything something nothing one ya u"
)
DETERMINER = listed(
    "a an the my your his her its our their any some all each every no both either neither most"
    " many another such"
)
SUBJECT_START = PRONOUN | DETERMINER
OBJECT = listed("me him her it us them you yourself yourselves this that these those one")
YOU = listed("you u ya")
SPEAKERS = listed("i we")
ADVERB = listed(
    "just always also really probably actually still definitely maybe perhaps all both simply only"
    " then certainly even guys"
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
    " excellent correct true please just maybe perhaps only simply definitely certainly"
    " absolutely really seriously always never ever still either edit ps btw fyi imo imho tip"
    " gosh huh meanwhile even mhm uh-huh mm-hmm generally usually ultimately"
)
LEAD_PAIRS = frozenset(
    {
        ("i", "mean"), ("you", "know"), ("i", "guess"), ("i", "think"), ("i", "suppose"),
        ("all", "right"), ("of", "course"), ("at", "least"), ("for", "example"),
        ("in", "fact"), ("by", "all"), ("got", "it"), ("thank", "you"), ("i", "see"),
    }
)  # fmt: skip
FILLER = listed("um uh er erm hmm hm mm mmm ah eh")

# Base forms that open a command. Nouns of the same spelling are told apart by what follows.
VERB = listed(
    """
    accept ace acknowledge act adapt add address adjust admit adopt advise aim allow analyze answer
    anticipate apologize apply appreciate approach argue arrange ask assume attend avoid
    bake balance be become beg begin believe bite block blow book borrow break breathe bring browse
    brush budget build buy
    calculate call calm carry catch celebrate challenge change charge chat check choose circle clean
    clear clip close coach collect combine come communicate compare complete compute concentrate
    confirm confront connect consider consult contact continue control convert convince cook copy
    correct count cover create cross cut
    dance deal decide decrease define delete demand describe design determine develop dig discuss
    distract ditch divide document donate double download drag draw dress drink drive drop
    earn eat educate eliminate email embrace emphasize encourage end engage enjoy enlist enroll
    ensure enter establish estimate evaluate examine exercise expect experiment explain explore
    expose express extend
    face factor fake feed feel fight figure file fill filter find finish fix flip focus fold follow
    force forget forgive form freeze
    gather get give go google grab grow guess guide
    handle hang help hide hire hit hold hug hurry
    identify ignore imagine improve include increase inform insert insist install interview
    introduce invest investigate invite involve isolate
    join judge jump
    keep kick know
    label laugh lay lead lean learn leave lend let lie lift limit line listen live locate lock
    log look lose lower
    maintain make manage map mark match measure meditate meet memorize mention mix modify monitor
    move multiply
    name negotiate note notice notify
    observe offer open order organize own
    pack paint pass pause pay perform pick place plan plant play point pour practice praise pray
    prepare present press pretend prevent print prioritize proceed process promise propose protect
    provide prune pull punish purchase push put
    quit quote
    raise reach react read realize recall recheck recognize recommend reconsider record redirect
    reduce refer reflect reframe refuse regard reinforce relax remember remind remove rent repeat
    rephrase replace reply report request require research resist respect respond rest return reward
    revisit rewrite ride ring rinse roll rotate round run
    save say scan schedule score scrub search see seek select sell send separate serve set shake
    share shop shout show shut sign simplify simulate sing sit skip sleep slow smile solve sort
    speak spend spin split spread stand start state stay stick stop store stretch structure study
    submit subtract suck suggest support suppose swap switch
    tackle take talk teach tell test text thank think throw touch track trade train transfer
    travel treat trim trust try turn type
    understand unplug upload use
    vary verify view visit volunteer vote
    wait wake walk warn wash watch wear weigh wipe wish work worry wrap wrestle write
    yell
    abandon abstain aspire assess assign assure await ban behave bend beware bind bless boil
    bother bounce breed brew bypass cancel cease chill chop claim clarify cling commit compliment
    conduct confess consume cooperate dare debate dedicate delay delegate derive detach devote dip
    disable discard disclose dive dodge dump echo elect embed enable endure enforce engrave enhance
    entertain equip erase escape exclude execute exploit fetch flush foster fund gain glance greet
    grind harvest heat highlight host inspect inspire install invent iron justify lighten loosen
    memorise motivate multitask nurture omit oppose outline overcome peel persevere persist persuade
    plug polish postpone pretend preserve pursue quiet rank recite reconcile recruit recycle refrain
    refresh rehearse reject rely renew repair reserve reset resolve restart restore restrict rethink
    retry reverse review reuse rewatch sacrifice scrape settle shift simmer soak spell squeeze stack
    steer step stir substitute summarize supply surround swim tape tie tighten toss transform
    translate trace unfold unite utilize venture vent widen wrap zoom
    """
)
# "Suppose you could fly" asks for a thought, and what follows belongs to that thought.
SUPPOSING = listed("suppose assume imagine picture say pretend")
# To follow these is to think or to answer, not to do.
THINKING = SUPPOSING | listed(
    "think reflect recall remember notice see wonder explore examine consider unpack pause clarify"
    " discuss ponder revisit rethink describe explain elaborate slow dig define"
)
CONSIDERING = listed("think reflect consider ponder")
# With one of the next list after them, these turn the talk to something.
TURNING = listed(
    "look take turn stay hold keep go step return come zoom focus test talk begin start set move"
    " stick sit check question put"
)
TALKED_OF = listed(
    "thought thoughts idea ideas question questions claim claims belief beliefs argument word"
    " words example examples definition assumption assumptions premise principle point view moment"
)
# What cannot follow a command's verb: then the first word was a noun, or a clause without subject.
NOT_AFTER_COMMAND = listed(
    "is are was were am 's 've has had can could will would should may might must does did of isn't"
    " aren't wasn't weren't doesn't didn't can't couldn't won't wouldn't i he she we they"
)


def is_adverb(word: str) -> bool:
    """Yes to "gently", no to "fly" and "multiply"."""
    return len(word) > len("ally") and word.endswith("ly") and word not in VERB


def is_adverbial(word: str) -> bool:
    return word in ADVERB or word in {"not", "never"} or is_adverb(word)
