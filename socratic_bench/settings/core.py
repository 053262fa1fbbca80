"""The settings of every run, whatever its benchmark."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Struct

from socratic_bench.generation import GenerateConfig
from socratic_bench.setting import Setting, Switch
from socratic_bench.settings.endpoints import Endpoint
from socratic_bench.settings.reader import READERS, Reader, parse_number
from socratic_bench.turns import JuryRule

MAX_TURNS = 500  # of a benchmark that sets no bound of its own
MOST_TURNS = 1_000_000  # the highest bound that a benchmark may set
MAX_ATTEMPTS = 10
CALL_TIMEOUT_S = 300.0
CALL_TIMEOUT_MAX_S = 3600
MAX_SEED = 2**53 - 1  # the largest integer that every JSON reader keeps exact

# By the group in which help and documents list them.
_dialogue = partial(Setting, "dialogue")
_tested = partial(Setting, "settings of the model under test")
_service = partial(Setting, "service")
_output = partial(Setting, "output")
_judging = partial(Setting, "judging")


def _parse_pair(word: str) -> tuple[str, str] | None:
    key, separator, value = word.partition("=")
    return (key, value) if separator else None


class Gate(Struct, frozen=True):
    """A gate: a run fails if the metric is under its bound or, by `side`, over it.

    `metric` is a path below the document's `metrics`, such as `overall_score`.
    """

    metric: str
    bound: float
    side: Literal["under", "over"] = "under"

    @classmethod
    def parse(cls, word: str) -> "Gate | None":
        metric, _, value = word.partition("=")
        bound = parse_number(value)
        if not metric.strip() or bound is None:
            return None
        return cls(metric.strip(), bound)

    @classmethod
    def parse_over(cls, word: str) -> "Gate | None":
        gate = cls.parse(word)
        return gate and cls(gate.metric, gate.bound, "over")

    @property
    def setting(self) -> str:
        """The field of the setting that gives it."""
        return "gates" if self.side == "under" else "gates_over"

    @property
    def word(self) -> str:
        """The gate as it is given."""
        return f"{self.metric}={self.bound:g}"

    def passes(self, value: float) -> bool:
        return value >= self.bound if self.side == "under" else value <= self.bound

    def failure(self, figure: str, value: float | None, reason: str | None) -> str:
        """The sentence about a `figure` that misses the gate; `reason` is why it is unknown."""
        if value is None:
            keeps = "reach" if self.side == "under" else "keep to"
            return f"{figure} is null ({reason}), so it does not {keeps} {self.bound:g}."
        gap = abs(value - self.bound)
        return f"{figure} is {value:g}, which is {gap:.4g} {self.side} {self.bound:g}."


class CoreConfig(GenerateConfig, frozen=True, kw_only=True):
    """The settings of every run.

    `None` in a setting of the model: it is not sent, so the model's or service's default applies.
    """

    model: Annotated[
        str,
        _dialogue(
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
        _dialogue(
            "NAME", "the benchmark to play: {benchmarks} (default {default})", identity="always"
        ),
    ] = "socratic"
    prompt: Annotated[
        str | None,
        _dialogue(
            "TEXT", "the opening words; - reads standard input", axis="prompts", is_sample=True
        ),
    ] = None
    turns: Annotated[
        int,
        _dialogue(
            "N",
            "turns to play at most, {low} to {high} (default {default})",
            variables=("RUNNER_DEFAULT_TURNS",),
            low=1,
            high=MAX_TURNS,
        ),
    ] = 40
    seed: Annotated[
        int | None,
        _dialogue(
            "N",
            "fixes everything left to chance; drawn and printed otherwise",
            default_words="drawn",
            low=0,
            high=MAX_SEED,
        ),
    ] = None
    system_prompt_file: Annotated[
        str | None,
        _dialogue(
            "FILE",
            "the system prompt of the model under test",
            default_words="built in",
            is_file=True,
        ),
    ] = None
    request_metadata: Annotated[
        tuple[tuple[str, str], ...],
        _tested(
            "K=V",
            "for every role's calls; repeatable, up to {high}",
            high=16,
            form="KEY=VALUE, such as team=physics",
            parse=_parse_pair,
            is_input=True,
        ),
    ] = ()
    stream: Annotated[
        bool,
        _tested(
            None,
            "have whole replies sent; there is no time to first token",
            flag="no-stream",
            is_input=True,
        ),
    ] = True
    prompt_cache: Annotated[
        bool,
        _tested(None, "send no cache points, for any role", flag="no-prompt-cache", is_input=True),
    ] = True
    endpoints: Annotated[
        tuple[Endpoint, ...],
        _service(
            "NAME=URL",
            "an endpoint of OpenAI's protocol, for models NAME/ID; its key is in a variable: "
            "NAME=URL,VARIABLE; repeatable",
            "an endpoint that speaks OpenAI's chat protocol, for models `NAME/ID`: "
            "[other providers](providers.md)",
            high=20,
            flag="endpoint",
            form="NAME=URL or NAME=URL,VARIABLE, with an http(s) URL and a name of small letters",
            parse=Endpoint.parse,
            identity="chosen",
        ),
    ] = ()
    model_ids: Annotated[
        tuple[str, ...] | None,
        _service(
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
        _service(
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
        _service(
            "ARN", "role taken for Bedrock calls only", variables=("BEDROCK_ASSUME_ROLE_ARN",)
        ),
    ] = None
    max_attempts: Annotated[
        int, _service("N", "requests that one call may take (default {default})", low=1, high=100)
    ] = MAX_ATTEMPTS
    max_concurrency: Annotated[
        int,
        _service(
            "N",
            "calls at once, where items do not wait for each other (default {default})",
            low=1,
            high=128,
        ),
    ] = 16
    call_timeout_s: Annotated[
        float,
        _service(
            "S",
            "seconds that one request may take (default {default})",
            flag="call-timeout",
            low=0.001,
            high=CALL_TIMEOUT_MAX_S,
        ),
    ] = CALL_TIMEOUT_S
    deadline_s: Annotated[
        float | None,
        _service(
            "S",
            "seconds that the run may take (default: no bound)",
            flag="deadline",
            low=0.001,
            high=30 * 86400,
        ),
    ] = None
    max_cost_usd: Annotated[
        float | None,
        _service(
            "USD",
            "start no call that could cost more than this in all",
            "start no request that could make the run [cost more](bedrock.md#budget)",
            low=0.000001,
            high=1_000_000,
        ),
    ] = None
    prices_file: Annotated[
        str | None,
        _service(
            "FILE",
            "prices of your own, as socratic-runner schema prices has them",
            "[prices of your own](bedrock.md#cost), before the built-in ones",
            default_words="built in",
            flag="prices",
            is_file=True,
        ),
    ] = None
    offline: Annotated[bool, _service(None, "play on the embedded endpoint, with no account")] = (
        False
    )
    resume: Annotated[
        bool,
        _output(
            None,
            "go on with the newest run of this command line, if there is one",
            "[continue](bedrock.md#resuming-a-run) the newest run of the same identity, if any",
            is_afresh=True,
        ),
    ] = False
    resume_run_id: Annotated[str | None, _output(None, "", is_afresh=True)] = None

    # Judges and gates.

    judge_model: Annotated[
        str | tuple[str, ...] | None,
        _judging(
            "ID",
            "the model that scores each turn; several are a jury",
            "the model that scores each turn; several are a [jury](judging.md#jury); need not be "
            "in `BEDROCK_MODEL_IDS`. `RUNNER_JURY_MODELS` is a JSON array, and beats the other",
            variables=("RUNNER_JURY_MODELS", "RUNNER_JUDGE_MODEL"),
            steered_by=Switch("no-judge", None, "leave judging out; scores are null"),
            high=16,
            identity="always",
        ),
    ] = "anthropic.claude-3-5-sonnet-20241022-v1:0"
    judge_context: Annotated[
        int,
        _judging(
            "K",
            "exchanges before a reply that a judge sees (default {default})",
            "exchanges before a reply that a judge sees, beside the opening",
            low=0,
            high=500,
            identity="chosen",
            is_input=True,
        ),
    ] = 3
    judge_samples: Annotated[
        int,
        _judging(
            "N",
            "verdicts of each juror on a turn; their mean counts (default {default})",
            low=1,
            high=100,
            identity="chosen",
        ),
    ] = 1
    quorum: Annotated[
        int | None,
        _judging(
            "N",
            "jurors that must give a verdict (default: {default})",
            default_words="more than half",
            low=1,
            high=16,
            identity="chosen",
        ),
    ] = None
    jury_rule: Annotated[
        JuryRule,
        _judging(
            "NAME",
            "how jurors' scores become one: {choices} (default {default})",
            identity="chosen",
        ),
    ] = "mean"
    calibration: Annotated[
        str | None,
        _judging(
            "FILE",
            "a calibration, or the DIR or s3://BUCKET/PREFIX where calibrate has kept them",
            "a calibration, or the folder or `s3://BUCKET/PREFIX` where "
            "[calibrate](judging.md#using-a-calibration) has kept them; `judge.calibration` in the "
            "document says whether one of them fits",
            variables=("RUNNER_CALIBRATION",),
            is_file=True,
        ),
    ] = None
    gates: Annotated[
        tuple[Gate, ...],
        _judging(
            "METRIC=VALUE",
            "exit 5 if a metric of the run, or in a sweep its mean over a model's runs, is lower; "
            "repeatable",
            "exit 5 if a metric of the run is lower, or in a [sweep](compare.md#gates) its mean "
            "over the runs of a model; repeatable",
            flag="fail-under",
            form="METRIC=VALUE, such as overall_score=7",
            parse=Gate.parse,
        ),
    ] = ()
    gates_over: Annotated[
        tuple[Gate, ...],
        _judging(
            "METRIC=VALUE",
            "exit 5 if a metric is higher, for those of which less is better",
            flag="fail-over",
            form="METRIC=VALUE, such as error_rate=0.2",
            parse=Gate.parse_over,
        ),
    ] = ()
    min_judge_coverage: Annotated[
        float,
        _judging("SHARE", "exit 5 if fewer turns are judged (default {default})", low=0, high=1),
    ] = 0.9

    # The stores; without any, only the document has the run.

    output_dir: Annotated[
        str | None,
        _output(
            "DIR",
            "keep the artifacts in a folder",
            short="o",
            variables=("RUNNER_OUTPUT_DIR",),
            is_afresh=True,
        ),
    ] = None
    s3_bucket: Annotated[
        str | None,
        _output(
            "NAME",
            "keep the artifacts in a bucket",
            variables=("RUNNER_S3_BUCKET",),
            is_afresh=True,
        ),
    ] = None
    s3_prefix: Annotated[
        str,
        _output(
            "PREFIX",
            "before every key in the bucket",
            variables=("RUNNER_S3_PREFIX",),
            is_afresh=True,
        ),
    ] = ""
    s3_kms_key_id: Annotated[
        str | None,
        _output(
            "KEY",
            "encrypt objects with this KMS key",
            "encrypt objects with this KMS key: its id, `alias/NAME`, or an ARN",
            default_words="the bucket's own",
            variables=("RUNNER_S3_KMS_KEY_ID",),
        ),
    ] = None

    # Settings whose value depends on more than their own flag and variables, with what reads them.
    READERS: ClassVar[Mapping[str, Callable[[Reader], Any]]] = READERS
    # Values of stored runs that can no longer be run, by setting: each with the reason.
    REMOVED: ClassVar[Mapping[str, Mapping[Any, str]]] = {}

    @property
    def generation(self) -> GenerateConfig:
        """The settings of each call of the model under test."""
        names = GenerateConfig.__struct_fields__
        return GenerateConfig(**{name: getattr(self, name) for name in names})

    @property
    def all_gates(self) -> tuple[Gate, ...]:
        return (*self.gates, *self.gates_over)

    @property
    def jurors(self) -> tuple[str, ...]:
        """The models that judge: several are a jury, and none leaves judging out."""
        if self.judge_model is None:
            return ()
        return (self.judge_model,) if isinstance(self.judge_model, str) else self.judge_model

    @property
    def needed_votes(self) -> int:
        """The number of jurors that must give a verdict, for the turn to have one."""
        return self.quorum or len(self.jurors) // 2 + 1
