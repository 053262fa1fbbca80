"""The settings of judges, and of the metrics that a run must reach."""

from typing import Annotated

from msgspec import Struct

from socratic_bench.setting import Setting, Switch
from socratic_bench.settings.reader import parse_number
from socratic_bench.settings.storage import StorageConfig
from socratic_bench.turns import JuryRule


class Gate(Struct, frozen=True):
    """A gate: the run fails if the metric is under `minimum`.

    `metric` is a path below the document's `metrics`, such as `overall_score`.
    """

    metric: str
    minimum: float

    @classmethod
    def parse(cls, word: str) -> "Gate | None":
        metric, _, bound = word.partition("=")
        minimum = parse_number(bound)
        if not metric.strip() or minimum is None:
            return None
        return cls(metric.strip(), minimum)


class JudgingConfig(StorageConfig, frozen=True, kw_only=True):
    """The settings of the judge or jury, and of gates."""

    judge_model: Annotated[
        str | tuple[str, ...] | None,
        Setting(
            "judging",
            "ID",
            "the model that scores each turn; several are a jury",
            "the model that scores each turn; several are a [jury](judging.md#a-jury); need not be "
            "in `BEDROCK_MODEL_IDS`. `RUNNER_JURY_MODELS` is a JSON array, and beats the other",
            variables=("RUNNER_JURY_MODELS", "RUNNER_JUDGE_MODEL"),
            steered_by=Switch(
                "no-judge", None, "leave judging out; scores are null", comes_after=True
            ),
            high=16,
            identity="always",
        ),
    ] = "anthropic.claude-3-5-sonnet-20241022-v1:0"
    judge_context: Annotated[
        int,
        Setting(
            "judging",
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
        Setting(
            "judging",
            "N",
            "verdicts of each juror on a turn; their mean counts (default {default})",
            low=1,
            high=100,
            identity="chosen",
        ),
    ] = 1
    quorum: Annotated[
        int | None,
        Setting(
            "judging",
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
        Setting(
            "judging",
            "NAME",
            "how jurors' scores become one: {choices} (default {default})",
            identity="chosen",
        ),
    ] = "mean"
    calibration: Annotated[
        str | None,
        Setting(
            "judging",
            "FILE",
            "a calibration, or the DIR or s3://BUCKET/PREFIX where calibrate has kept them",
            "a calibration, or the folder or `s3://BUCKET/PREFIX` where "
            "[calibrate](calibration.md#later-runs) has kept them; `judge.calibration` in the "
            "document says whether one of them fits",
            variables=("RUNNER_CALIBRATION",),
            is_file=True,
        ),
    ] = None
    gates: Annotated[
        tuple[Gate, ...],
        Setting(
            "judging",
            "METRIC=VALUE",
            "exit 5 if a metric is lower; repeatable",
            "exit 5 if a metric is lower; repeatable; in a sweep also "
            "[METRIC.low](statistics.md#gates) and the like, of all runs of a model",
            flag="fail-under",
            form="METRIC=VALUE, such as overall_score=7",
            parse=Gate.parse,
        ),
    ] = ()
    min_judge_coverage: Annotated[
        float,
        Setting(
            "judging",
            "SHARE",
            "exit 5 if fewer turns are judged (default {default})",
            low=0,
            high=1,
        ),
    ] = 0.9

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
