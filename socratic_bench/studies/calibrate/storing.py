"""Where a calibration is kept: beside the run that judged, in its own folder of the stores."""

from pathlib import Path

from msgspec.structs import replace

from socratic_bench.benchmarks import RunConfig
from socratic_bench.documents import encode
from socratic_bench.documents.calibration import CalibrationDocument
from socratic_bench.documents.encoding import plain_keys
from socratic_bench.settings import CoreConfig
from socratic_bench.storage.stores import open_bucket, open_folder

FOLDER = "calibrations"


def in_its_folder(config: RunConfig) -> RunConfig:
    """Apart from runs that were played, so that these can be compared by themselves."""
    folder = str(Path(config.output_dir) / FOLDER) if config.output_dir else None
    prefix = f"{config.s3_prefix}/{FOLDER}".strip("/") if config.s3_bucket else ""
    return replace(config, output_dir=folder, s3_prefix=prefix)


def keep(document: CalibrationDocument, config: CoreConfig) -> None:
    """Raises `ArtifactError` if a store does not take it."""
    body = encode(plain_keys(document))
    for store in (open_folder(config), open_bucket(config)):
        if store is not None:
            store.put(f"{document.run_id}.json", body)
