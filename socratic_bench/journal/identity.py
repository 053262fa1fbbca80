"""The identity of a run: what must stay the same while it is resumed."""

from collections.abc import Iterator, Mapping
from hashlib import sha256

from msgspec import Struct

from socratic_bench.documents import encode
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.ports.benchmark import Sample
from socratic_bench.ports.parts import Part
from socratic_bench.settings import (
    CoreConfig,
    SettingField,
    settings_of_other_benchmarks,
    table,
    to_plain,
)
from socratic_bench.types import Json

MAX_VALUE_CHARS = 80


class Identity(Struct, frozen=True):
    """The parts that must not change while a run is resumed, by their names for people."""

    parts: Mapping[str, Json]

    @classmethod
    def of(
        cls, config: CoreConfig, opening: Sample, benchmark_part: Part, *, seed_given: bool
    ) -> "Identity":
        """The identity of a prepared run. A seed that was drawn is no part of it. `opening` gives
        the prompt and the digests of its files, the table of settings all else.
        """
        other_benchmarks = settings_of_other_benchmarks(type(config), config.benchmark)
        settings = [
            setting
            for setting in table(type(config)).values()
            if setting.name not in other_benchmarks and _is_part(setting, config)
        ]
        return cls(
            {
                **{_title(s.name): to_plain(getattr(config, s.name)) for s in settings},
                **plain_keys(benchmark_part),
                "prompt": opening.prompt,
                **({"seed": config.seed} if seed_given else {}),
                **{_title(name): digest for name, digest in opening.hashes.items()},
            }
        )

    @property
    def digest(self) -> str:
        """32 hexadecimal digits, the same for the same parts in any order."""
        return sha256(encode(dict(sorted(self.parts.items())))).hexdigest()[:32]

    def differences(self, requested: "Identity") -> Iterator[str]:
        """A sentence for each part in which the requested run is another one than this."""
        for name in sorted({*self.parts, *requested.parts}):
            before, now = self.parts.get(name), requested.parts.get(name)
            title = name.removesuffix(" sha256")
            if before == now or (name == "seed" and now is None):
                continue
            if title == name:
                yield f"The {name} was {_format(before)}, but now is {_format(now)}."
            elif before is None:
                yield f"The run had no {title}, but now has one."
            elif now is None:
                yield f"The run had its {title}, but now has none."
            else:
                yield f"The {title} has other contents than when it began."


def _is_part(setting: SettingField, config: CoreConfig) -> bool:
    is_default = getattr(config, setting.name) == setting.default
    kind = setting.setting.identity
    return kind == "always" or (kind == "chosen" and not is_default)


def _title(name: str) -> str:
    return name.replace("_", " ")


def _format(value: Json) -> str:
    text = "not given" if value is None else repr(value)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[: MAX_VALUE_CHARS - 3]}..."
