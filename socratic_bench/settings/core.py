"""The settings of every run, whatever its benchmark."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

from socratic_bench.generation import GenerateConfig
from socratic_bench.setting import Setting
from socratic_bench.settings.judging import JudgingConfig
from socratic_bench.settings.reader import BEDROCK, READERS, Reader

MAX_TURNS = 500  # of a benchmark that sets no bound of its own
MOST_TURNS = 1_000_000  # the highest bound that a benchmark may set
MAX_ATTEMPTS = 10
CALL_TIMEOUT_S = 300.0
CALL_TIMEOUT_MAX_S = 3600
MAX_SEED = 2**53 - 1  # the largest integer that every JSON reader keeps exact


def _parse_pair(word: str) -> tuple[str, str] | None:
    key, separator, value = word.partition("=")
    return (key, value) if separator else None


class CoreConfig(JudgingConfig, frozen=True, kw_only=True):
    """The settings of every run.

    `None` in a setting of the model: it is not sent, so the model's or service's default applies.
    """

    model: Annotated[
        str,
        Setting(
            "dialogue",
            "ID",
            "model under test: id, inference-profile id or ARN",
            "the model under test; it has to stand in `BEDROCK_MODEL_IDS`",
            default_words="required",
            identity="always",
            axis="models",
        ),
    ]
    benchmark: Annotated[
        str,
        Setting(
            "dialogue",
            "NAME",
            "the benchmark to play: {benchmarks} (default {default})",
            identity="always",
        ),
    ] = "socratic"
    prompt: Annotated[
        str | None,
        Setting(
            "dialogue",
            "TEXT",
            "the opening words; - reads standard input",
            axis="prompts",
            is_sample=True,
        ),
    ] = None
    turns: Annotated[
        int,
        Setting(
            "dialogue",
            "N",
            "turns to play at most, {low} to {high} (default {default})",
            variables=("RUNNER_DEFAULT_TURNS",),
            low=1,
            high=MAX_TURNS,
        ),
    ] = 40
    seed: Annotated[
        int | None,
        Setting(
            "dialogue",
            "N",
            "fixes everything left to chance; drawn and printed otherwise",
            default_words="drawn",
            low=0,
            high=MAX_SEED,
        ),
    ] = None
    system_prompt_file: Annotated[
        str | None,
        Setting(
            "dialogue",
            "FILE",
            "the system prompt of the model under test",
            default_words="built in",
            is_file=True,
        ),
    ] = None
    request_metadata: Annotated[
        tuple[tuple[str, str], ...],
        Setting(
            "settings of the model under test",
            "K=V",
            "for every role's calls; repeatable, up to {high}",
            after="guardrail",
            high=16,
            form="KEY=VALUE, such as team=physics",
            parse=_parse_pair,
            is_input=True,
        ),
    ] = ()
    stream: Annotated[
        bool,
        Setting(
            "settings of the model under test",
            None,
            "have whole replies sent; there is no time to first token",
            flag="no-stream",
            is_input=True,
        ),
    ] = True
    prompt_cache: Annotated[
        bool,
        Setting(
            "settings of the model under test",
            None,
            "send no cache points, for any role",
            flag="no-prompt-cache",
            is_input=True,
        ),
    ] = True
    provider: Annotated[
        str,
        Setting(
            "service",
            "NAME",
            "who answers (default {default})",
            "who answers: the name of a [provider](../CONTRIBUTING.md#adding-a-provider)",
            identity="chosen",
            is_input=True,
        ),
    ] = BEDROCK
    model_ids: Annotated[
        tuple[str, ...] | None,
        Setting(
            "service",
            None,
            "",
            "a JSON array of the ids that may be tested",
            default_words="required",
            variables=("BEDROCK_MODEL_IDS",),
            is_afresh=True,
        ),
    ] = None
    region: Annotated[
        str | None,
        Setting(
            "service",
            "REGION",
            "AWS region",
            default_words="the profile's",
            variables=("AWS_REGION", "AWS_DEFAULT_REGION"),
            axis="regions",
            is_input=True,
        ),
    ] = None
    assume_role_arn: Annotated[
        str | None,
        Setting(
            "service",
            "ARN",
            "role taken for Bedrock calls only",
            variables=("BEDROCK_ASSUME_ROLE_ARN",),
        ),
    ] = None
    max_attempts: Annotated[
        int,
        Setting(
            "service", "N", "requests that one call may take (default {default})", low=1, high=100
        ),
    ] = MAX_ATTEMPTS
    max_concurrency: Annotated[
        int,
        Setting(
            "service",
            "N",
            "calls at once, where items do not wait for each other (default {default})",
            low=1,
            high=128,
        ),
    ] = 16
    call_timeout_s: Annotated[
        float,
        Setting(
            "service",
            "S",
            "seconds that one request may take (default {default})",
            flag="call-timeout",
            low=0.001,
            high=CALL_TIMEOUT_MAX_S,
        ),
    ] = CALL_TIMEOUT_S
    deadline_s: Annotated[
        float | None,
        Setting(
            "service",
            "S",
            "seconds that the run may take (default: no bound)",
            flag="deadline",
            low=0.001,
            high=30 * 86400,
        ),
    ] = None
    max_cost_usd: Annotated[
        float | None,
        Setting(
            "service",
            "USD",
            "start no call that could cost more than this in all",
            "start no request that could make the run [cost more](cost.md#a-budget)",
            low=0.000001,
            high=1_000_000,
        ),
    ] = None
    prices_file: Annotated[
        str | None,
        Setting(
            "service",
            "FILE",
            "prices of your own, as socratic-runner schema prices has them",
            "[prices of your own](cost.md#prices-of-your-own), before the built-in ones",
            default_words="built in",
            flag="prices",
            is_file=True,
        ),
    ] = None
    offline: Annotated[
        bool, Setting("service", None, "play on the embedded endpoint, with no account")
    ] = False
    resume: Annotated[
        bool,
        Setting(
            "output",
            None,
            "go on with the newest run of this command line, if there is one",
            "[go on](resume.md) with the newest run of the same identity, if there is one",
            after="s3-kms-key-id",
            is_afresh=True,
        ),
    ] = False
    resume_run_id: Annotated[str | None, Setting("output", None, "", is_afresh=True)] = None

    # Settings whose value depends on more than their own flag and variables, with what reads them.
    READERS: ClassVar[Mapping[str, Callable[[Reader], Any]]] = READERS
    # Values of stored runs that can no longer be run, by setting: each with the reason.
    REMOVED: ClassVar[Mapping[str, Mapping[Any, str]]] = {}

    @property
    def generation(self) -> GenerateConfig:
        """The settings of each call of the model under test."""
        names = GenerateConfig.__struct_fields__
        return GenerateConfig(**{name: getattr(self, name) for name in names})
