"""Pairs of requests out of a small grammar of our own, for what edits do not reach.

`requests_en.txt` and `requests_zh.txt` have three parts, with `---` between them:

- `kind: fillers` of the slots, with other words for one filler after `=`;
- blocks about one thing each. Lines of a block are intents that exclude each other; in a line
  stand wordings of one intent. `{city}` is a slot, `{city'}` another filler of the same kind:
  turned around they make another question, except in blocks that begin with `~`;
- greetings, and what people write at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

SLOT = re.compile(r"\{(\w+'?)\}")
# Wordings of an intent in which the order of two fillers means nothing.
UNORDERED = re.compile(
    r"between|share a|distance|combine|together with|with \{drug|difference|differ"
    r"|一起吃|同吃|同食|之间"
)


@dataclass
class Grammar:
    """What may be said, and how."""

    fillers: dict[str, list[list[str]]]
    # Whether the order of two fillers means something, and the intents with their wordings.
    blocks: list[tuple[bool, list[list[str]]]]
    openings: list[str]
    closings: list[str]


def read(language: str) -> Grammar:
    path = Path(__file__).parent / f"requests_{language}.txt"
    fillers, topics, ends = path.read_text(encoding="utf-8").split("\n---\n")
    kinds = dict(line.split(": ", 1) for line in fillers.split("\n"))
    blocks = [
        (not block.startswith("~"),
         [line.removeprefix("~ ").split("|") for line in block.split("\n")])
        for block in topics.split("\n\n")
    ]  # fmt: skip
    openings, closings = (line.split("|") for line in ends.rstrip("\n").split("\n"))
    return Grammar(
        {kind: [one.split("=") for one in text.split("|")] for kind, text in kinds.items()},
        blocks,
        openings,
        closings,
    )


def typed(grammar: Grammar, text: str, random: Random) -> str:
    """As people type: other case, no sign at the end, a greeting, thanks, a slip."""
    if random.random() < 0.3:
        text = text.lower()
    if random.random() < 0.25:
        text = text.rstrip("?.？。")
    if random.random() < 0.12:
        text = random.choice(grammar.openings) + text[:1].lower() + text[1:]
    if random.random() < 0.1:
        text += random.choice(grammar.closings)
    if random.random() < 0.06 and len(text) > 14:
        at = random.randint(3, len(text) - 4)
        if text[at - 1 : at + 2].isalpha():
            text = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text


def requests(language: str, random: Random) -> Iterator[tuple[str, str, int, str]]:
    """An endless row of (a, b, label, kind); somewhat more than half have the label 0."""
    grammar = read(language)
    things, blocks = grammar.fillers, grammar.blocks
    blocks = [block for block in blocks for _ in range(min(len(block[1]), 6))]

    def draw(wording: str) -> dict[str, list[str]]:
        drawn: dict[str, list[str]] = {}
        for slot in dict.fromkeys(SLOT.findall(wording)):
            kind = slot.rstrip("'")
            used = [filler for other, filler in drawn.items() if other.rstrip("'") == kind]
            drawn[slot] = random.choice([one for one in things[kind] if one not in used])
        return drawn

    def said(wording: str, drawn: dict[str, list[str]], fixed: bool = False) -> str:
        def word(match: re.Match[str]) -> str:
            names = drawn[match.group(1)]
            return names[0] if fixed or random.random() < 0.5 else random.choice(names)

        text = SLOT.sub(word, wording)
        return text[:1].upper() + text[1:] if wording[:1] == "{" and random.random() < 0.4 else text

    while True:
        turns, intents = random.choice(blocks)
        intent = random.choice(intents)
        one, two = random.sample(intent, 2) if len(intent) > 1 else (intent[0], intent[0])
        drawn = draw(one)
        if any(slot not in drawn for slot in draw(two)):
            continue
        as_typed = random.random() < 0.5
        how = (lambda text: typed(grammar, text, random)) if as_typed else (lambda text: text)
        yield how(said(one, drawn)), how(said(two, drawn)), 1, "request"
        # The same wording with another filler is the hardest; another wording must be caught, too.
        same_wording = random.random() < 0.6
        if drawn:
            slot = random.choice(list(drawn))
            kind = slot.rstrip("'")
            other = dict(drawn)
            used = [filler for name, filler in drawn.items() if name.rstrip("'") == kind]
            other[slot] = random.choice([filler for filler in things[kind] if filler not in used])
            asked = one if same_wording else two
            yield (
                how(said(one, drawn, same_wording)),
                how(said(asked, other, same_wording)),
                0,
                "other_filler",
            )
        pairs = [slot for slot in drawn if slot + "'" in drawn]
        if pairs and one.count("{" + pairs[0] + "}") == 1:
            slot = pairs[0]
            turned = drawn | {slot: drawn[slot + "'"], slot + "'": drawn[slot]}
            yield (how(said(one, drawn, same_wording)),
                   how(said(one if same_wording else two, turned, same_wording)),
                   0 if turns and not UNORDERED.search(one + two) else 1,
                   "turned_request")  # fmt: skip
        fitting = [
            other for other in intents
            if other is not intent and set(SLOT.findall(other[0])) <= set(drawn)
        ]  # fmt: skip
        if fitting:
            other = random.choice(fitting)
            wording = other[0] if one is intent[0] and same_wording else random.choice(other)
            if set(SLOT.findall(wording)) <= set(drawn):
                yield (
                    how(said(one, drawn, same_wording)),
                    how(said(wording, drawn, same_wording)),
                    0,
                    "other_intent",
                )
