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

Via = Literal["now", "batch", "auto"]

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
        return f"{self.metric}={self.bound:g}"

    def passes(self, value: float) -> bool:
        return value >= self.bound if self.side == "under" else value <= self.bound

    def failure(self, figure: str, value: float | None, reason: str | None) -> str:
        """The sentence about a `figure` that misses the gate; `reason` is why it is unknown."""
        required = f"at {'least' if self.side == 'under' else 'most'} {self.bound:g}"
        if value is None:
            return f"{figure} is null ({reason}), but must be {required}."
        return f"{figure} is {value:g}, but must be {required}."


class CoreConfig(GenerateConfig, frozen=True, kw_only=True):
    """The settings of every run.

    `None` in a setting of the model: it is not sent, so the model's or service's default applies.
    """

    model: Annotated[
        str,
        _dialogue(
            "ID",
            "model to test: id, inference profile or ARN",
            "model to test: id, inference profile or ARN, as in `BEDROCK_MODEL_IDS`",
            default_words="required",
            identity="always",
            axis="models",
        ),
    ]
    benchmark: Annotated[
        str,
        _dialogue("NAME", "{benchmarks}", identity="always"),
    ] = "socratic"
    prompt: Annotated[
        str | None,
        _dialogue(
            "TEXT",
            "first message of the student; - reads standard input",
            axis="prompts",
            is_sample=True,
        ),
    ] = None
    turns: Annotated[
        int,
        _dialogue(
            "N",
            "maximum number of turns (default {default})",
            variables=("RUNNER_DEFAULT_TURNS",),
            low=1,
            high=MAX_TURNS,
        ),
    ] = 40
    seed: Annotated[
        int | None,
        _dialogue(
            "N",
            "random seed (default: {default}, and printed)",
            default_words="random",
            low=0,
            high=MAX_SEED,
        ),
    ] = None
    system_prompt_file: Annotated[
        str | None,
        _dialogue(
            "FILE",
            "file with the system prompt of the model under test",
            default_words="built in",
            is_file=True,
        ),
    ] = None
    request_metadata: Annotated[
        tuple[tuple[str, str], ...],
        _tested(
            "K=V",
            "metadata of all calls, for Bedrock's invocation log; up to {high} pairs",
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
            "disable streaming (no time to first token)",
            flag="no-stream",
            is_input=True,
        ),
    ] = True
    prompt_cache: Annotated[
        bool,
        _tested(None, "disable prompt caching", flag="no-prompt-cache", is_input=True),
    ] = True
    endpoints: Annotated[
        tuple[Endpoint, ...],
        _service(
            "NAME=URL",
            "OpenAI-compatible endpoint for models NAME/ID (NAME=URL,KEY_VARIABLE)",
            "OpenAI-compatible endpoint, for models `NAME/ID`: [other providers](providers.md)",
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
            "ids of the models that may be tested: a JSON array, or separated by commas",
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
            "ARN", "IAM role to assume for Bedrock calls", variables=("BEDROCK_ASSUME_ROLE_ARN",)
        ),
    ] = None
    max_attempts: Annotated[
        int,
        _service("N", "attempts per call, retries included (default {default})", low=1, high=100),
    ] = MAX_ATTEMPTS
    max_concurrency: Annotated[
        int,
        _service(
            "N",
            "parallel calls in benchmarks of independent items (default {default})",
            low=1,
            high=128,
        ),
    ] = 16
    call_timeout_s: Annotated[
        float,
        _service(
            "S",
            "timeout of a request, in seconds (default {default})",
            flag="call-timeout",
            low=0.001,
            high=CALL_TIMEOUT_MAX_S,
        ),
    ] = CALL_TIMEOUT_S
    deadline_s: Annotated[
        float | None,
        _service(
            "S",
            "time limit of the command, in seconds (default: none)",
            flag="deadline",
            low=0.001,
            high=30 * 86400,
        ),
    ] = None
    via: Annotated[
        Via,
        _service(
            "HOW",
            "calls of the tested model: {choices} (default {default})",
            "how the model under test is called: now, as a batch job at a lower price, or auto, as "
            "is cheaper: [batch inference](bedrock.md#batch-inference)",
        ),
    ] = "now"
    judge_via: Annotated[
        Via,
        _judging(
            "HOW",
            "calls of the judges: {choices} (default {default})",
            "how judges are called: see `--via`",
        ),
    ] = "now"
    batch_role_arn: Annotated[
        str | None,
        _service(
            "ARN",
            "role in which Bedrock reads and writes the records of batch jobs",
            variables=("BEDROCK_BATCH_ROLE_ARN",),
        ),
    ] = None
    batch_s3: Annotated[
        str | None,
        _service(
            "URI",
            "s3://BUCKET/PREFIX for the records of batch jobs",
            default_words="the bucket of results",
            variables=("BEDROCK_BATCH_S3",),
        ),
    ] = None
    wait: Annotated[
        bool,
        _service(
            None, "submit batch jobs and exit; --resume collects", flag="no-wait", is_afresh=True
        ),
    ] = True
    max_cost_usd: Annotated[
        float | None,
        _service(
            "USD",
            "stop before the total cost could exceed USD",
            low=0.000001,
            high=1_000_000,
        ),
    ] = None
    prices_file: Annotated[
        str | None,
        _service(
            "FILE",
            "price file (format: socratic-runner schema prices)",
            "price file; its prices replace built-in ones",
            default_words="built in",
            flag="prices",
            is_file=True,
        ),
    ] = None
    offline: Annotated[
        bool, _service(None, "use the built-in mock of Bedrock (no AWS account)")
    ] = False
    resume: Annotated[
        bool,
        _output(
            None,
            "continue the newest run with the same arguments",
            "continue the newest interrupted run with the same settings, or start one",
            is_afresh=True,
        ),
    ] = False
    resume_run_id: Annotated[str | None, _output(None, "", is_afresh=True)] = None

    # Judges and gates.

    judge_model: Annotated[
        str | tuple[str, ...] | None,
        _judging(
            "ID",
            "judge (default Claude 3.5 Sonnet); several: a jury",
            "judge model, which need not be in `BEDROCK_MODEL_IDS`; several form a jury. "
            "`RUNNER_JURY_MODELS` lists several, and beats `RUNNER_JUDGE_MODEL`",
            variables=("RUNNER_JURY_MODELS", "RUNNER_JUDGE_MODEL"),
            steered_by=Switch("no-judge", None, "skip judging; scores are null"),
            high=16,
            identity="always",
        ),
    ] = "anthropic.claude-3-5-sonnet-20241022-v1:0"
    judge_context: Annotated[
        int,
        _judging(
            "K",
            "earlier exchanges that the judge sees (default {default})",
            "exchanges before the reply that the judge sees, besides the opening",
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
            "verdicts per judge and turn, averaged (default {default})",
            low=1,
            high=100,
            identity="chosen",
        ),
    ] = 1
    quorum: Annotated[
        int | None,
        _judging(
            "N",
            "minimum verdicts per turn (default: {default})",
            default_words="more than half of the judges",
            low=1,
            high=16,
            identity="chosen",
        ),
    ] = None
    jury_rule: Annotated[
        JuryRule,
        _judging(
            "NAME",
            "how judges' scores are combined: {choices} (default {default})",
            identity="chosen",
        ),
    ] = "mean"
    calibration: Annotated[
        str | None,
        _judging(
            "FILE",
            "output of calibrate: a file, folder or s3:// prefix",
            "calibrations: a file, folder or `s3://` prefix that `calibrate` has written; "
            "`judge.calibration` in the document says whether one applies",
            variables=("RUNNER_CALIBRATION",),
            is_file=True,
        ),
    ] = None
    gates: Annotated[
        tuple[Gate, ...],
        _judging(
            "METRIC=VALUE",
            "exit 5 if METRIC (sweep: its mean) is below VALUE",
            "exit 5 if a metric of the run is below VALUE, or in a sweep its mean over a model's "
            "runs",
            flag="fail-under",
            form="METRIC=VALUE, such as overall_score=7",
            parse=Gate.parse,
        ),
    ] = ()
    gates_over: Annotated[
        tuple[Gate, ...],
        _judging(
            "METRIC=VALUE",
            "exit 5 if METRIC (sweep: its mean) is above VALUE",
            flag="fail-over",
            form="METRIC=VALUE, such as error_rate=0.2",
            parse=Gate.parse_over,
        ),
    ] = ()
    min_judge_coverage: Annotated[
        float,
        _judging(
            "SHARE",
            "exit 5 if less than this share of turns is judged (default {default})",
            low=0,
            high=1,
        ),
    ] = 0.9

    # The stores; without any, only the document has the run.

    output_dir: Annotated[
        str | None,
        _output(
            "DIR",
            "folder for results and resuming",
            short="o",
            variables=("RUNNER_OUTPUT_DIR",),
            is_afresh=True,
        ),
    ] = None
    s3_bucket: Annotated[
        str | None,
        _output(
            "NAME",
            "S3 bucket for results and resuming",
            variables=("RUNNER_S3_BUCKET",),
            is_afresh=True,
        ),
    ] = None
    s3_prefix: Annotated[
        str,
        _output(
            "PREFIX",
            "prefix of all keys in the bucket",
            variables=("RUNNER_S3_PREFIX",),
            is_afresh=True,
        ),
    ] = ""
    s3_kms_key_id: Annotated[
        str | None,
        _output(
            "KEY",
            "KMS key for objects in the bucket",
            "KMS key for objects in the bucket: id, `alias/NAME` or ARN",
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
    def batch_root(self) -> str | None:
        """The S3 address below which the records of batch jobs are; `None` if there is none."""
        if self.batch_s3 or not self.s3_bucket:
            return self.batch_s3
        return f"s3://{self.s3_bucket}/{self.s3_prefix.strip('/')}".rstrip("/")

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
