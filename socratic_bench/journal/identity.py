"""What makes two command lines the same run, and what may differ between them."""

from collections.abc import Iterator, Mapping
from hashlib import sha256

from msgspec import Struct

from socratic_bench.documents import encode
from socratic_bench.documents.plain import plain_keys
from socratic_bench.ports.benchmark import Sample
from socratic_bench.ports.parts import Part
from socratic_bench.settings import CoreConfig, Declared, foreign, table, to_plain
from socratic_bench.types import Json

SHOWN_CHARS = 80


class Identity(Struct, frozen=True):
    """The parts that a run cannot change while it goes on, by their names for people."""

    parts: Mapping[str, Json]

    @classmethod
    def of(
        cls, config: CoreConfig, opening: Sample, played: Part, *, seed_given: bool
    ) -> "Identity":
        """The identity of a prepared run. A seed that was drawn is no part of it.

        Prompt and what is `played` come from the opening, everything else from the table of
        settings.
        """
        others = foreign(type(config), config.benchmark)
        declared = [one for one in table(type(config)).values() if one.name not in others]
        told = {one.name: getattr(config, one.name) for one in declared if _is_told(one, config)}
        return cls(
            {
                **{_title(name): to_plain(value) for name, value in told.items()},
                **plain_keys(played),
                "prompt": opening.prompt,
                **({"seed": config.seed} if seed_given else {}),
                **{_title(name): digest for name, digest in opening.hashes.items()},
            }
        )

    @property
    def digest(self) -> str:
        """32 hexadecimal digits, the same for the same parts in any order."""
        return sha256(encode(dict(sorted(self.parts.items())))).hexdigest()[:32]

    def differences(
        self, other: "Identity", editions: Mapping[str, tuple[Json, Json]]
    ) -> Iterator[str]:
        """A sentence for each part in which `other`, which was asked for, is another run.

        `editions` are those that the run began with and that are asked for, by setting: what has
        one is told by its name instead of its contents.
        """
        named = {_title(name): pair for name, pair in editions.items() if pair[0] != pair[1]}
        for title, (was, asked) in named.items():
            yield f"The {title} was {_shown(was)}, but now is {_shown(asked)}."
        for name in sorted({*self.parts, *other.parts}):
            was, asked = self.parts.get(name), other.parts.get(name)
            title = name.removesuffix(" sha256")
            if was == asked or (name == "seed" and asked is None) or title in named:
                continue
            if title == name:
                yield f"The {name} was {_shown(was)}, but now is {_shown(asked)}."
            else:
                yield _other_contents(title, was, asked)


def _other_contents(title: str, was: Json, asked: Json) -> str:
    """What is said of contents that only their digests tell apart."""
    if was is None:
        return f"The run had no {title}, but now has one."
    if asked is None:
        return f"The run had its {title}, but now has none."
    return f"The {title} has other contents than when it began."


def _is_told(one: Declared, config: CoreConfig) -> bool:
    is_default = getattr(config, one.name) == one.default
    return one.setting.identity == "always" or (one.setting.identity == "chosen" and not is_default)


def _title(name: str) -> str:
    return name.replace("_", " ")


def _shown(value: Json) -> str:
    text = "not given" if value is None else repr(value)
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 3]}..."
