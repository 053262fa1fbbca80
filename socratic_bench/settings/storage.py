"""The settings of the stores of a run."""

from typing import Annotated

from socratic_bench.generation import GenerateConfig
from socratic_bench.setting import Setting


class StorageConfig(GenerateConfig, frozen=True, kw_only=True):
    """The stores of a run; without any, only its document has it."""

    output_dir: Annotated[
        str | None,
        Setting(
            "output",
            "DIR",
            "keep the artifacts in a folder",
            short="o",
            variables=("RUNNER_OUTPUT_DIR",),
            is_afresh=True,
        ),
    ] = None
    s3_bucket: Annotated[
        str | None,
        Setting(
            "output",
            "NAME",
            "keep the artifacts in a bucket",
            variables=("RUNNER_S3_BUCKET",),
            is_afresh=True,
        ),
    ] = None
    s3_prefix: Annotated[
        str,
        Setting(
            "output",
            "PREFIX",
            "before every key in the bucket",
            variables=("RUNNER_S3_PREFIX",),
            is_afresh=True,
        ),
    ] = ""
    s3_kms_key_id: Annotated[
        str | None,
        Setting(
            "output",
            "KEY",
            "encrypt objects with this KMS key",
            "encrypt objects with this KMS key: its id, `alias/NAME`, or an ARN",
            default_words="the bucket's own",
            variables=("RUNNER_S3_KMS_KEY_ID",),
        ),
    ] = None
