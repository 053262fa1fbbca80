"""Opens the stores that a configuration names."""

from socratic_bench.artifacts.folder import FolderStore
from socratic_bench.config import OFFLINE_REGION, RunConfig
from socratic_bench.ports import ArtifactStore


def open_folder(config: RunConfig) -> FolderStore | None:
    """The output folder, if one is asked for."""
    return FolderStore(config.output_dir) if config.output_dir else None


def open_bucket(config: RunConfig) -> ArtifactStore | None:
    """The bucket, if one is asked for; the SDK's S3 part is loaded only then."""
    if not config.s3_bucket:
        return None
    from socratic_bench.artifacts.s3 import S3Store

    return S3Store(
        config.s3_bucket, prefix=config.s3_prefix, region=config.region or OFFLINE_REGION
    )
