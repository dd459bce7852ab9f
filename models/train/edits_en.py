"""English edits of a question: `DIFFERENT` ones change the answer, `SAME` ones do not.

An edit takes a question and a random source and gives the edited question, or None where it does
not apply. It need not be good style: the verifier must judge what people type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

Edit = Callable[[str, Random], "str | None"]


def words(text: str) -> list[list[str]]:
    """`a b|c d` as [[a, b], [c, d]]; an underscore stands for a space within a word."""
    return [[word.replace("_", " ") for word in group.split()] for group in text.split("|")]


OPPOSITES = words(
    "increase decrease|open close|buy sell|start stop|enable disable|install uninstall|add "
    "remove|create delete|first last|best worst|good bad|old new|fast slow|high low|hot cold|"
    "long short|big small|large small|strong weak|rich poor|easy hard|easy difficult|safe "
    "dangerous|legal illegal|possible impossible|before after|above below|more less|most least|"
    "over under|maximum minimum|max min|upload download|login logout|import export|gain lose|"
    "win lose|love hate|early late|male female|man woman|men women|boy girl|boys girls|"
    "boyfriend girlfriend|husband wife|father mother|brother sister|son daughter|morning "
    "evening|day night|summer winter|north south|east west|left right|inside outside|indoor "
    "outdoor|public private|positive negative|advantages disadvantages|pros cons|benefits "
    "risks|success failure|accept reject|accept decline|approve deny|allow block|allow prevent|"
    "borrow lend|send receive|deposit withdraw|deposit withdrawal|incoming outgoing|encrypt "
    "decrypt|compress extract|lock unlock|hire fire|arrive depart|arrival departure|asset "
    "liability|debit credit|income expense|internal external|junior senior|beginner expert|"
    "cheap expensive|empty full|full partial|free paid|heavy light|thick thin|wide narrow|deep "
    "shallow|happy sad|healthy unhealthy|visible hidden|up down|push pull|raise lower|improve "
    "worsen|include exclude|activate deactivate|subscribe unsubscribe|follow unfollow|freeze "
    "unfreeze|online offline|natural artificial|always never|with without|married single|alive "
    "dead|true false|same different|domestic international|monthly yearly|daily weekly|weekly "
    "monthly|today tomorrow|yesterday today|hourly daily|upgrade downgrade|renew cancel|begin "
    "end|forward backward|wet dry|hard soft|loud quiet|clean dirty|young old|ascending "
    "descending|encode decode|mount unmount|connect disconnect|attach detach|appear disappear|"
    "agree disagree|parent child|teacher student|buyer seller|employer employee|cause cure|"
    "symptoms treatment|read write|remember forget|reduce increase|sleep wake|quit join|leave "
    "join|leave enter|rent buy|rent sell|sick healthy|kill save|attack defend|wholesale retail|"
    "gross net|show hide|mute unmute|pause resume|save discard|accept refuse|earn spend|pass "
    "fail|expand collapse|front back|top bottom|input output|client server|sender recipient|"
    "opening closing|check-in check-out|earliest latest|oldest newest|largest smallest|highest "
    "lowest|longest shortest|fastest slowest|cheapest priciest|better worse|faster slower|"
    "cheaper pricier|bigger smaller|longer shorter|higher lower|sender receiver|host guest|"
    "lender borrower|landlord tenant|doctor patient|winner loser|predecessor successor|"
    "ancestor descendant|supply demand|profit loss|import_duty export_duty|asc desc|"
    "uppercase lowercase|horizontal vertical|clockwise counterclockwise|odd even|plus minus|"
    "multiply divide|addition subtraction|ceiling floor|entrance exit|arriving departing|"
    "boarding landing|takeoff landing|upstairs downstairs|upload_speed download_speed|"
    "front-end back-end|frontend backend|prefix suffix|append prepend|push pop|insert delete|"
    "commit rollback|merge split|join separate|attach remove|wrap unwrap|inhale exhale|"
    "praise criticise|praise criticize|encourage discourage|persuade dissuade|motivate "
    "demotivate|optimistic pessimistic|introvert extrovert|temporary permanent|optional "
    "mandatory|voluntary compulsory|allowed forbidden|permitted prohibited|required optional|"
    "included excluded|guilty innocent|majority minority|major minor|rural urban|ancient "
    "modern|raw cooked|fresh frozen|fresh stale|sweet sour|sharp blunt|smooth rough|tight "
    "loose|solid liquid|bright dark|light dark|noisy quiet|crowded empty|polite rude|brave "
    "cowardly|generous stingy|lazy hardworking|rise fall|rising falling|grow shrink|growing "
    "shrinking|stretch shrink|inflate deflate|speed_up slow_down|turn_on turn_off|switch_on "
    "switch_off|log_in log_out|sign_in sign_out|check_in check_out|move_in move_out|zoom_in "
    "zoom_out|opt_in opt_out|scroll_up scroll_down|pick_up drop_off|put_on take_off|warm_up "
    "cool_down|cool heat|warm cool|melt freeze|fill empty|load unload|inbound outbound|"
    "overpaid underpaid|overweight underweight|overestimate underestimate|overcook undercook|"
    "before_the after_the|during after|until from|from until|toward away_from|near far_from|"
    "in_favor_of against|for against|pro anti|with against|because_of despite|same opposite|"
    "together apart|alone together|once again|first_time last_time|next previous|next last|"
    "current previous|current former|upcoming past|ago from_now|later earlier|sooner later"
)
SIBLINGS = words(
    "India China Japan Canada Australia Germany France Brazil Russia Mexico Italy Spain "
    "Pakistan Nigeria Indonesia Singapore Ireland Sweden|Delhi Mumbai Bangalore Chennai London "
    "Paris Tokyo Boston Chicago Seattle Toronto Sydney Berlin Dubai Hyderabad Pune|January "
    "February March April May June July August September October November December|Monday "
    "Tuesday Wednesday Thursday Friday Saturday Sunday|English French German Spanish Japanese "
    "Chinese Hindi Arabic Russian Italian Korean|Google Apple Microsoft Amazon Facebook Uber "
    "Netflix Samsung Tesla Twitter Quora YouTube Instagram WhatsApp Snapchat LinkedIn|Java "
    "Python Ruby PHP JavaScript Swift Go Rust Perl|Trump Clinton Obama Modi Putin Sanders Bush|"
    "two three four five six seven eight nine ten|iPhone Android iPad Windows Linux Mac|dog "
    "cat horse rabbit bird|milk tea coffee water juice beer wine|CEO CTO CFO|kg pounds grams|"
    "km miles meters|days weeks months years|minutes hours seconds|day week month year|red "
    "blue green black white yellow|physics chemistry biology mathematics economics history|MBA "
    "PhD MS BTech|Gmail Outlook Yahoo|Chrome Firefox Safari|first second third fourth|"
    "Paul Peter Mark John David Thomas|Anna Maria Julia Emma Sophie|Norway Finland Denmark "
    "Iceland|Slovakia Slovenia Serbia Croatia|Kenya Ghana Uganda Ethiopia|Peru Chile Colombia "
    "Bolivia|Austria Hungary Poland Romania|Lisbon Madrid Vienna Prague Rome Athens|Texas "
    "Florida Ohio Nevada Oregon|Ubuntu Debian Fedora|MacBook ThinkPad Chromebook|Spotify "
    "Netflix Disney Hulu|PlayStation Xbox Switch|DHL UPS FedEx|Ryanair Lufthansa KLM|React "
    "Angular Vue|Docker Kubernetes Podman|AWS Azure GCP|Haskell Scala Kotlin|ChatGPT Gemini "
    "Claude|Toyota Honda Ford BMW Audi|Nike Adidas Puma|Mars Venus Jupiter Saturn|gold silver "
    "copper iron|measles mumps flu malaria|ibuprofen aspirin paracetamol|almond oat soy|"
    "chicken beef pork fish|rice pasta bread potatoes|apple banana orange grape|puppy kitten|"
    "carpet sofa mattress|kitchen bathroom bedroom garage|passport visa licence|mortgage "
    "loan lease|invoice receipt|order refund return|subscription order account|address date|"
    "delivery payment|laptop phone tablet|battery screen keyboard|router printer scanner|"
    "folder file link|column row table index|text image video audio|font color size|"
    "print scan copy fax|clean repair replace|wash dry iron|bake fry boil grill|swim run "
    "walk ride|eat drink|knit sew|paint draw|sing dance|guitar piano violin drums|pilot "
    "nurse lawyer teacher chef|uncle aunt cousin|grandfather grandmother|bus train plane "
    "ferry taxi|hotel hostel apartment|window aisle|museum library theatre|pharmacy bakery "
    "bank|breakfast lunch dinner|Visa Mastercard PayPal|spring autumn winter summer|dollars euros "
    "pounds rupees|USD EUR GBP INR|PDF Word Excel JSON XML CSV|Celsius Fahrenheit Kelvin|email "
    "phone address password username|MySQL PostgreSQL MongoDB Redis|morning afternoon evening|"
    "weekdays weekends|adults children|checking savings"
)
QUANTITIES = words(
    "all some|all only|at_least at_most|more_than less_than|more_than exactly|both either|many "
    "few|everyone nobody|always sometimes|minimum average|maximum average|up_to at_least|only "
    "also|including except|all none|each one_of_the|per_day per_week|per_month per_year|within "
    "after|once twice|single multiple|before since|until after|largest second_largest|best "
    "second_best|first second|only all|every one|most some|most all|a_few all|everything "
    "nothing|anything everything|always rarely|often rarely|usually never|at_least exactly|no "
    "any|daily monthly|weekly yearly|per_hour per_day|a_day a_week|minimum maximum|half double|"
    "half all|twice half|most none|except with|except only|besides only|even only|too not"
)
PREFIXES = words(
    "able unable|known unknown|paid unpaid|read unread|likely unlikely|lock unlock|subscribe "
    "unsubscribe|install reinstall|open reopen|start restart|set reset|new renew|use reuse|"
    "write rewrite|build rebuild|visible invisible|correct incorrect|complete incomplete|"
    "direct indirect|regular irregular|legal illegal|logical illogical|moral immoral|formal "
    "informal|secure insecure|verified unverified|connect reconnect|active inactive|valid "
    "invalid|pin unpin|archive unarchive|block unblock|mute unmute|load unload|load reload|"
    "pack unpack|zip unzip|share unshare|link unlink|friend unfriend|send resend|pay repay|"
    "order reorder|name rename|approve disapprove|authorized unauthorized|play replay|fund "
    "refund|charge recharge|charge discharge|employed unemployed|named unnamed|healthy "
    "unhealthy|happy unhappy|fair unfair|common uncommon|limited unlimited|used unused|"
    "plug unplug|wrap unwrap|screw unscrew|tie untie|fold unfold|button unbutton|zip unzip|"
    "check uncheck|select deselect|select unselect|hide unhide|do undo|undo redo|do redo|"
    "install uninstall|assign unassign|assign reassign|register unregister|register "
    "deregister|schedule reschedule|schedule unschedule|format reformat|size resize|brand "
    "rebrand|train retrain|attach reattach|enter re-enter|apply reapply|submit resubmit|view "
    "review|view preview|heat reheat|heat preheat|fill refill|tweet retweet|cover recover|"
    "cover uncover|activate reactivate|activate deactivate|hydrate dehydrate|compile "
    "decompile|increment decrement|value devalue|value revalue|classify declassify|mystify "
    "demystify|frost defrost|bug debug|code decode|encode decode|couple decouple|serialize "
    "deserialize|allocate deallocate|like dislike|like unlike|agree disagree|allow disallow|"
    "appear disappear|approve disapprove|assemble disassemble|assemble reassemble|connect "
    "disconnect|continue discontinue|honest dishonest|loyal disloyal|obey disobey|order "
    "disorder|own disown|prove disprove|qualify disqualify|trust distrust|trust mistrust|"
    "understand misunderstand|use misuse|spell misspell|lead mislead|place misplace|place "
    "replace|behave misbehave|interpret misinterpret|match mismatch|match unmatch|paid "
    "prepaid|paid unpaid|paid underpaid|order preorder|historic prehistoric|war postwar|"
    "graduate undergraduate|graduate postgraduate|national international|personal "
    "impersonal|patient impatient|possible impossible|mature immature|mortal immortal|"
    "balance imbalance|accurate inaccurate|adequate inadequate|appropriate inappropriate|"
    "capable incapable|convenient inconvenient|dependent independent|expensive inexpensive|"
    "tolerant intolerant|sensitive insensitive|sufficient insufficient|voluntary "
    "involuntary|reversible irreversible|relevant irrelevant|responsible irresponsible|"
    "rational irrational|literate illiterate|certain uncertain|clear unclear|employed "
    "unemployed|expected unexpected|familiar unfamiliar|finished unfinished|friendly "
    "unfriendly|important unimportant|intended unintended|licensed unlicensed|natural "
    "unnatural|official unofficial|popular unpopular|reliable unreliable|related unrelated|"
    "safe unsafe|stable unstable|successful unsuccessful|wanted unwanted|married unmarried|"
    "registered unregistered|secured unsecured|skilled unskilled|solved unsolved|taxed "
    "untaxed|tested untested|treated untreated|vaccinated unvaccinated|washed unwashed|"
    "harmful harmless|useful useless|careful careless|painful painless|hopeful hopeless|"
    "employee employer|trainee trainer|payee payer|interviewee interviewer|mentor mentee"
)
QUALIFIERS = words(
    "in_Canada in_India for_kids for_beginners on_Android on_a_Mac without_a_degree after_40 "
    "in_2017 at_night for_free during_pregnancy online in_winter at_work for_a_company "
    "with_a_credit_card on_weekends for_students without_money on_my_phone by_email "
    "for_two_people in_the_US offline for_a_business_account from_abroad without_a_password "
    "in_bulk last_year by_phone as_a_guest"
)[0]
QUESTION_STARTS = [
    ("Why ", ["When ", "Where "]),
    ("When ", ["Why ", "Where "]),
    ("Where ", ["When ", "Why "]),
    ("How many ", ["Which "]),
    ("How long ", ["How much ", "How often "]),
    ("How often ", ["How long "]),
    ("How much ", ["How often "]),
    ("Who ", ["Why "]),
    ("How do I ", ["Why do I ", "When do I ", "Should I "]),
    ("How can I ", ["Why should I ", "When can I "]),
    ("Should I ", ["How do I ", "Why should I "]),
    ("What is the best way to ", ["What is the worst way to ", "How long does it take to "]),
    ("What is ", ["Who is ", "Where is ", "Why is "]),
]
SYNONYMS = words(
    "buy purchase|begin start|big large|quick fast|quickly fast|movie film|movies films|kids "
    "children|picture photo|pictures photos|fix repair|help assist|mistake error|cellphone "
    "phone|get_rid_of remove|smart intelligent|rich wealthy|difficult hard|important "
    "significant|ways methods|way method|make_money earn_money|reasons causes|doctor physician|"
    "car vehicle|lose_weight reduce_weight|really actually|difference distinction|happen occur|"
    "happens occurs|choose select|choose pick|learn study|answer reply|use utilize|build "
    "construct|scared afraid|sick ill|fat overweight|cheap inexpensive|delete erase|delete "
    "remove|benefits advantages|USA United_States|US United_States|UK United_Kingdom|"
    "programming coding|approximately about|improve enhance|increase raise|end finish|turn_on "
    "enable|turn_off disable|log_in sign_in|log_out sign_out|sign_up register|cancel terminate|"
    "change modify|change update|change alter|find locate|show display|contact reach|require "
    "need|get obtain|receive get|allowed permitted|company firm|employees staff|laptop "
    "notebook|mobile phone|photo image|bug defect|job position|okay ok|email e-mail|wifi wi-fi|"
    "application app|information info|apartment flat|maximum max|minimum min|currently now|"
    "possible feasible|price cost|send transfer|color colour|center centre|favorite favourite|"
    "organize organise|license licence|ask enquire|try attempt|need want_to_have|wrong "
    "incorrect|right correct|complete finish|set_up configure|look_up search_for|as_well_as "
    "and|a_lot_of many|two-factor 2FA"
)
FRAMES = [
    [
        "How can I ",
        "How do I ",
        "How to ",
        "What is the best way to ",
        "How should I ",
        "how would i ",
    ],
    ["How do you ", "How does one ", "How do I ", "How can you "],
    ["Is it possible to ", "Can I ", "Can you ", "Is there a way to ", "Am I able to "],
    ["What is ", "What's ", "Tell me what is ", "whats "],
    [
        "What are the best ",
        "Which are the best ",
        "What are some of the best ",
        "What are some good ",
    ],
    ["What are ", "What're ", "Which are ", "Tell me what are "],
    ["Why do people ", "Why do some people ", "What makes people "],
    ["Why is ", "What is the reason that ", "why's "],
    ["Where can I ", "Where do I ", "Where could I "],
    ["How much does ", "What does ", "How much will "],
    ["What does it mean to ", "What is the meaning of to "],
    ["Should I ", "Is it a good idea to ", "Do you think I should "],
    ["What happens if ", "What would happen if ", "What will happen if "],
    ["Do you think ", "Do you believe ", "In your opinion, "],
    ["How long does it take to ", "How much time does it take to ", "How long would it take to "],
]
CONTRACTIONS = [
    ("is not", "isn't"), ("do not", "don't"), ("does not", "doesn't"), ("can't", "cannot"),
    ("I am", "I'm"), ("can not", "can't"), ("are not", "aren't"), ("did not", "didn't"),
    ("will not", "won't"), ("I have", "I've"), ("it is", "it's"), ("should not", "shouldn't"),
    ("would not", "wouldn't"), ("who is", "who's"), ("you are", "you're"), ("they are", "they're"),
]  # fmt: skip
NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
AUXILIARY = "do|does|did|is|are|was|should|would|could|can|has|have"
PRONOUN = "I|we|you|they|he|she|it|people|someone"


def bounded(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])", re.IGNORECASE)


def with_case(new: str, old: str) -> str:
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


def swap_within(groups: list[list[str]], text: str, random: Random) -> str | None:
    """One word of a group replaced by another of the same group, wherever it stands."""
    found = [
        (match, word, group)
        for group in groups
        for word in group
        if word.lower() in text.lower()
        for match in bounded(word).finditer(text)
    ]
    if not found:
        return None
    match, word, group = random.choice(found)
    new = random.choice([other for other in group if other != word])
    return text[: match.start()] + with_case(new, match.group()) + text[match.end() :]


def opposite(text: str, random: Random) -> str | None:
    return swap_within(OPPOSITES, text, random)


def sibling(text: str, random: Random) -> str | None:
    return swap_within(SIBLINGS, text, random)


def quantity(text: str, random: Random) -> str | None:
    return swap_within(QUANTITIES, text, random)


def prefix(text: str, random: Random) -> str | None:
    return swap_within(PREFIXES, text, random)


def other_number(digits: str, random: Random) -> str:
    """A number of the same kind: a year stays a year, the rest moves near or by a factor."""
    value = int(digits[:9])
    if 1900 < value < 2100:
        return str(value + random.choice([-3, -2, -1, 1, 2, 5]))
    near = [value + random.choice([1, 2, 3, 5, 10]), max(value - random.choice([1, 2]), 0)]
    choices = [new for new in [*near, value * 2, value * 10, value // 2, value + 7] if new != value]
    return str(random.choice(choices))


def number(text: str, random: Random) -> str | None:
    found = list(re.finditer(r"\d+", text))
    if not found:
        return None
    match = random.choice(found)
    return text[: match.start()] + other_number(match.group(), random) + text[match.end() :]


def time_of_day(text: str, random: Random) -> str | None:
    """7am for 7 pm; where there is no time, one is put in by `added_time` on both sides."""
    match = re.search(r"(?<=\d)( ?)([ap])\.?m\b", text, re.IGNORECASE)
    if not match:
        return None
    new = match.group(1) + ("pm" if match.group(2).lower() == "a" else "am")
    return text[: match.start()] + new + text[match.end() :]


def entity(names: list[str]) -> Edit:
    """A capitalised word within the question replaced by another one of `names`."""

    def edit(text: str, random: Random) -> str | None:
        found = list(re.finditer(r"(?<=[a-z,] )[A-Z][a-zA-Z]{2,}", text))
        if not found:
            return None
        match = random.choice(found)
        new = random.choice(names)
        return text[: match.start()] + new + text[match.end() :] if new != match.group() else None

    return edit


def negation(text: str, random: Random) -> str | None:
    removed = [
        (r"\b(can)'t\b", r"\1"),
        (r"\bcannot\b", "can"),
        (rf"\b({AUXILIARY})n't\b", r"\1"),
        (rf"\b({AUXILIARY}) not\b", r"\1"),
        (r"\bnot ", ""),
        (r"\bnever ", ""),
    ]
    for pattern, new in removed:
        if re.search(pattern, text):
            return re.sub(pattern, new, text, count=1)
    added = [
        (rf"^(\w+)(.*?)\b({AUXILIARY}) ({PRONOUN}) ", r"\1\2\3 \4 not "),
        (r"^(Why|Who|What|Which)\b(.*?)\b(is|are|was|does|do|did|should|would)\b", r"\1\2\3n't"),
        (r"^(Why|How|What|Which|Who)(.*?)\bcan\b", r"\1\2can't"),
        (r"\bto ([a-z]+)\b", r"not to \1"),
        (r"\b(will|should|must|would|can|could) (?=[a-z]+)", r"\1 not "),
    ]
    usable = [(pattern, new) for pattern, new in added if re.search(pattern, text)]
    if not usable:
        return None
    pattern, new = random.choice(usable)
    return re.sub(pattern, new, text, count=1)


def qualifier(text: str, random: Random) -> str | None:
    if not text.endswith("?") or len(text) > 90:
        return None
    return f"{text[:-1].rstrip()} {random.choice(QUALIFIERS)}?"


def roles(text: str, random: Random) -> str | None:
    """Direction and roles exchanged: from A to B, A better than B, A of B, convert A to B."""
    patterns = [
        r"\bfrom (?P<x>\w+)(?P<m> to )(?P<y>\w+)\b",
        r"\b(?:convert|change|turn|switch|transfer|move|migrate|translate) "
        r"(?:a |an |the )?(?P<x>\w+)(?P<m> (?:to|into) (?:a |an |the )?)(?P<y>\w+)\b",
        r"\b(?P<x>\w+)(?P<m> (?:is |are )?(?:better|worse|faster|older|stronger|bigger|cheaper"
        r"|more \w+|less \w+) than )(?P<y>\w+)\b",
        r"\b(?P<x>[A-Z]\w+)(?P<m> (?:invade|attack|beat|defeat|buy|help|hate|support|leave|acquire"
        r"|owe|pay|love)s? )(?P<y>[A-Z]\w+)\b",
        r"\b(?P<x>my \w+|I|he|she)(?P<m> (?:tell|ask|pay|owe|help|call|text|love)s? )(?P<y>\w+)\b",
        r"\b(?P<x>\w{4,})(?P<m> without )(?P<y>\w{4,})\b",
        r"\b(?P<x>\w{3,})(?P<m> (?:before|after) )(?P<y>\w{3,})\b",
    ]
    for pattern in random.sample(patterns, len(patterns)):
        match = re.search(pattern, text)
        if match and match["x"].lower() != match["y"].lower():
            swapped = match["y"] + match["m"] + match["x"]
            return text[: match.start("x")] + swapped + text[match.end("y") :]
    return None


def question_word(text: str, random: Random) -> str | None:
    for start, others in QUESTION_STARTS:
        if text.startswith(start):
            return random.choice(others) + text[len(start) :]
    return None


def punctuation(text: str, random: Random) -> str | None:
    bare = text.rstrip("?!. ")
    return random.choice(
        [bare, bare + " ?", text.lower(), bare.lower(), bare.lower(), text.replace(",", ""),
         text.replace("'", "’"), bare + "??", bare + ".", text.replace("'", "")]
    )  # fmt: skip


def politeness(text: str, random: Random) -> str | None:
    keep = re.match(r"(I\b|[A-Z]{2})", text)
    low = text if keep else text[:1].lower() + text[1:]
    bare = text.rstrip("?")
    return random.choice(
        ["Please tell me: " + low, "Can you tell me " + low, "Hi, " + low, "Hello! " + text,
         "Please help, " + low, "I would like to know " + low, "Quick question: " + low,
         text + " Thanks!", bare + ", please?", "Could you explain " + low, "I want to know " + low,
         "Hey, " + low, text + " Thank you in advance.", "I was wondering, " + low,
         "Does anyone know " + low, bare + " pls", "Hey there, " + low, "Sorry to bother, " + low]
    )  # fmt: skip


def synonym(text: str, random: Random) -> str | None:
    return swap_within(SYNONYMS, text, random)


def frame(text: str, random: Random) -> str | None:
    found = [
        (start, group)
        for group in FRAMES
        for start in group
        if text.lower().startswith(start.lower())
    ]
    if not found:
        return None
    start, group = random.choice(found)
    return random.choice([new for new in group if new != start]) + text[len(start) :]


KEYWORDS_LEFT_OUT = set(
    "how do i can you we to what is are the a an does did should would could my your for of in on "
    "at "
    "there it i'm im me please some any be will if so that this which".split()
)


def keywords(text: str, random: Random) -> str | None:
    """As typed into a search box: words without meaning left out."""
    if re.search(
        r"\b(not|no|never|without|than|from|before|after|who|why|when|where)\b|n't", text, re.I
    ):
        return None
    split = re.findall(r"[\w'#+-]+", text)
    kept = [word for word in split if word.lower() not in KEYWORDS_LEFT_OUT]
    if not 2 <= len(kept) < len(split):
        return None
    if re.match(r"how (do|can|to)", text, re.I) and random.random() < 0.6:
        kept = ["how", "to", *kept] if random.random() < 0.5 else [*kept, "how"]
    return " ".join(kept).lower() if random.random() < 0.8 else " ".join(kept)


def statement(text: str, random: Random) -> str | None:
    """A wish instead of a question."""
    match = re.match(r"how (?:do|can|could|should|would) (?:i|you|we|one) (.+?)\??$", text, re.I)
    if match:
        rest = match.group(1)
        return random.choice(
            [f"I want to {rest}.", f"I'd like to {rest}, how does that work?", f"I need to {rest}",
             f"I am trying to {rest}. How?", f"Tell me the steps to {rest}.",
             f"Show me how to {rest}",
             f"What are the steps to {rest}?", f"Could you help me {rest}?", f"ways to {rest}",
             f"I don't know how to {rest}.", f"What's the right way to {rest}?"]
        )  # fmt: skip
    match = re.match(r"what (?:is|are) (.+?)\??$", text, re.I)
    if match:
        rest = match.group(1)
        return random.choice(
            [f"Tell me {rest}.", f"I want to know {rest}", f"Explain {rest}.", f"{rest}?", rest,
             f"Could you explain {rest}?", f"I'd like to learn about {rest}."]
        )  # fmt: skip
    match = re.match(r"why (?:is|are) (.+?)\??$", text, re.I)
    if match:
        return random.choice(["What is the reason for ", "I wonder about "]) + match.group(1) + "?"
    return None


def layers(text: str, random: Random) -> str | None:
    """Two or three edits that change nothing, one upon another."""
    made = text
    for edit in random.sample([synonym, frame, small_words, typo, politeness, punctuation,
                               contraction, statement, keywords], 5):  # fmt: skip
        made = edit(made, random) or made
        if made != text and random.random() < 0.35:
            break
    return made if made != text else None


def contraction(text: str, random: Random) -> str | None:
    both = CONTRACTIONS + [(short, long) for long, short in CONTRACTIONS]
    usable = [(old, new) for old, new in both if bounded(old).search(text)]
    if not usable:
        return None
    old, new = random.choice(usable)
    return bounded(old).sub(new, text, count=1)


def typo(text: str, random: Random) -> str | None:
    found = list(re.finditer(r"\b[a-z]{6,}\b", text))
    if not found:
        return None
    match = random.choice(found)
    word = match.group()
    at = random.randint(1, len(word) - 3)
    new = random.choice(
        [word[:at] + word[at + 1] + word[at] + word[at + 2 :], word[:at] + word[at + 1 :],
         word[:at] + word[at] + word[at:]]
    )  # fmt: skip
    return text[: match.start()] + new + text[match.end() :]


def order(text: str, random: Random) -> str | None:
    """A or B, between A and B, A vs B: the order carries nothing."""
    either = r"\b(?P<x>\w{3,})(?P<m> (?:or|vs\.?|versus) )(?P<y>\w{3,})\b(?=[?,.])"
    both = r"between (?P<x>\w+)(?P<m> and )(?P<y>\w+)\b(?=[?, ])"
    match = re.search(both, text) or re.search(either, text)
    odd = {"more", "less", "not", "should", "other"}
    if not match or {match["x"].lower(), match["y"].lower()} & odd:
        return None
    return text[: match.start()] + re.sub(
        r"(between )?.*", lambda m: (m.group(1) or "") + match["y"] + match["m"] + match["x"],
        match.group(), count=1,
    ) + text[match.end() :]  # fmt: skip


def small_words(text: str, random: Random) -> str | None:
    edits = [
        (r"\bthe ", ""), (r"\b(a|an) ", ""), (r"\bsome ", ""), (r"\bexactly ", ""),
        (r"^(What|How|Why) (is|are|do|does|can)\b", r"\1 exactly \2"), (r"\bmy\b", "a"),
        (r"\bthat\b ", ""), (r"\ba\b", "the"), (r"\bthe\b", "a"), (r"\bmy\b", "the"),
        (r"\b(\w{4,}[^s])s\b(?=\?)", r"\1"), (r"\bI\b", "you"), (r"\byou\b", "I"),
        (r"\bbest\b", "very best"), (r"\bon\b", "in"), (r"\bI\b", "one"),
    ]  # fmt: skip
    usable = [(pattern, new) for pattern, new in edits if re.search(pattern, text)]
    if not usable:
        return None
    pattern, new = random.choice(usable)
    return re.sub(pattern, new, text, count=1)


def same_number(text: str, random: Random) -> str | None:
    """1,000 = 1000 = 1k, 2 = two: the same amount in other signs."""
    match = re.search(r"(?<![\d.,])\d+(?![\d.,])", text)
    if match:
        value = int(match.group()[:12])
        forms = [f"{value:,}"] if value >= 10000 else []
        forms += [f"{value // 1000}k"] if value and value % 1000 == 0 else []
        forms += [NUMBER_WORDS[value]] if value < len(NUMBER_WORDS) else []
        new = random.choice(forms) if forms else None
        return text[: match.start()] + new + text[match.end() :] if new else None
    for value, word in enumerate(NUMBER_WORDS[2:], 2):
        if bounded(word).search(text):
            return bounded(word).sub(str(value), text, count=1)
    return None


def reversed_numbers(text: str, random: Random) -> str | None:
    """Two numbers of a question exchanged."""
    found = list(re.finditer(r"\d+", text))
    if len(found) < 2:
        return None
    one, two = sorted(random.sample(found, 2), key=lambda match: match.start())
    if one.group() == two.group():
        return None
    return (
        text[: one.start()] + two.group() + text[one.end() : two.start()] + one.group()
        + text[two.end() :]
    )  # fmt: skip


def without(text: str, random: Random) -> str | None:
    """With for without, and the other way round, before a noun."""
    match = re.search(r"\b(with(?:out)?) (?=[a-z]{3,})", text)
    if not match:
        return None
    new = "with" if match.group(1) == "without" else "without"
    return text[: match.start(1)] + new + text[match.end(1) :]


class Contexts:
    """Words that stand between the same words somewhere: fluent, and seldom the same."""

    def __init__(self, texts: list[str], kept: int = 40) -> None:
        counts: dict[tuple[str, str], dict[str, int]] = {}
        for text in texts:
            split = ["", *re.findall(r"[\w']+", text.lower()), ""]
            for before, word, after in zip(split, split[1:], split[2:], strict=False):
                for place in ((before, "<"), (after, ">")):
                    seen = counts.setdefault(place, {})
                    seen[word] = seen.get(word, 0) + 1
        self.near = {
            place: set(sorted(seen, key=lambda word: (-seen[word], word))[: kept * 5])
            for place, seen in counts.items()
            if len(seen) > 1
        }
        self.alike = {frozenset((one, two)) for group in SYNONYMS for one in group for two in group}

    def __call__(self, text: str, random: Random) -> str | None:
        """One word with meaning replaced by another that fits both its neighbours."""
        found = list(re.finditer(r"(?<![\w'])[a-z]{4,}(?![\w'])", text))
        random.shuffle(found)
        for match in found[:4]:
            word = match.group()
            if word in SMALL:
                continue
            before = re.search(r"([\w']+)\W*$", text[: match.start()])
            after = re.search(r"^\W*([\w']+)", text[match.end() :])
            left = self.near.get((before.group(1).lower() if before else "", "<"), set())
            right = self.near.get((after.group(1).lower() if after else "", ">"), set())
            usable = sorted(
                other for other in left & right
                if len(other) > 3 and other not in SMALL and other.isalpha()
                and not alike(word, other) and frozenset((word, other)) not in self.alike
            )  # fmt: skip
            if usable:
                return text[: match.start()] + random.choice(usable) + text[match.end() :]
        return None


def alike(one: str, two: str) -> bool:
    """Forms of one word, and likely slips: the same beginning."""
    shared = next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), 99)
    return shared >= max(3, min(len(one), len(two)) - 3)


SMALL = set(
    "about also been best better between could does doing done ever every exactly from get getting "
    "give going good great have having here into just know like made make making many more most "
    "much need only other people really should some someone something such take than that their "
    "them "
    "then there these they thing things think this those very want were what when where which will "
    "with would your ways possible actually best mean tell explain please help find".split()
)


def added_time(text: str, random: Random) -> tuple[str, str] | None:
    """Two questions that differ in the time, the day or the month put into both."""
    if not text.endswith("?") or len(text) > 100:
        return None
    hour = random.randint(1, 12)
    months, days = SIBLINGS[2], SIBLINGS[3]
    day, other = random.sample(days, 2)
    month, another = random.sample(months, 2)
    bare = text[:-1].rstrip()
    first, second = random.choice(
        [(f"at {hour}am", f"at {hour}pm"), (f"at {hour} pm", f"at {hour} am"),
         (f"on {day}", f"on {other}"), (f"in {month}", f"in {another}"),
         (f"before {day}", f"after {day}"), (f"today at {hour}pm", f"today at {hour}am"),
         (f"until {day}", f"until {other}")]
    )  # fmt: skip
    return f"{bare} {first}?", f"{bare} {second}?"


def different(names: list[str], contexts: Edit) -> dict[str, Edit]:
    """The edits that change the answer; `names` are what an entity may be replaced with."""
    return {
        "number": number, "opposite": opposite, "sibling": sibling, "entity": entity(names),
        "negation": negation, "qualifier": qualifier, "roles": roles, "quantity": quantity,
        "prefix": prefix, "question_word": question_word, "time_of_day": time_of_day,
        "reversed_numbers": reversed_numbers, "without": without, "context": contexts,
    }  # fmt: skip


SAME: dict[str, Edit] = {
    "punctuation": punctuation, "politeness": politeness, "synonym": synonym, "frame": frame,
    "contraction": contraction, "typo": typo, "order": order, "small_words": small_words,
    "same_number": same_number, "keywords": keywords, "statement": statement, "layers": layers,
}  # fmt: skip
