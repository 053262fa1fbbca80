"""Where a run is kept: its stores, looked at before anything is called, and what they get."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from socratic_bench.documents import encode
from socratic_bench.ports.store import ArtifactStore, Journals
from socratic_bench.runs.context import RunScope
from socratic_bench.storage.delivery import Delivery, UploadPolicy
from socratic_bench.storage.stores import (
    bucket_journals,
    check_stores,
    folder_journals,
    open_bucket,
    open_folder,
)
from socratic_bench.types import Json

if TYPE_CHECKING:
    from socratic_bench.storage.s3 import S3Store

IN_IMAGE = "RUNNER_IN_IMAGE"  # set in the Dockerfile
MOUNTS = Path("/proc/self/mountinfo")
Document = Callable[[], dict[str, Json]]


class RunStores:
    """The stores of one run, both optional. `delivery` carries its journals, `files` its files."""

    def __init__(self, scope: RunScope) -> None:
        self._scope = scope
        self.folder = open_folder(scope.config, scope.listener.on_notice)
        self.bucket: S3Store | None = None
        self._documents: dict[str, Document] = {}
        self.delivery = self.files = self._delivery(self.folder)

    def open_bucket(self) -> None:
        """In another thread, since credentials can be slow. Raises what ends the run meanwhile."""
        scope = self._scope
        if scope.config.s3_bucket:
            self.bucket = scope.in_time(lambda: open_bucket(scope.config, scope.notice))
            self.delivery = self.files = self._delivery(self.folder, self.bucket)

    def checked_journals(self) -> list[Journals]:
        """Where the run is kept call by call; the folder is asked first. Raises `UsageError` with
        every reason for which nothing can be kept.
        """
        check_stores([store for store in (self.folder, self.bucket) if store])
        scope = self._scope
        in_bucket = bucket_journals(
            self.bucket,
            self.delivery,
            sleep=scope.cancel_token.sleep,
            on_lost=scope.cancel_token.end,
            notice=scope.listener.on_notice,
            keeps_notes=self.folder is None,
        )
        in_folder = folder_journals(scope.config, scope.listener.on_notice)
        return [found for found in (in_folder, in_bucket) if found]

    def take_up(self, run_id: str, *, is_complete: bool) -> None:
        """Send the files of this run; of one that is complete and delivered only to the folder,
        which is cheap to look through and to mend: a bucket's files are never half there.
        """
        curated = self._scope.plan.keys(run_id).curated
        if is_complete and (not self.bucket or self.bucket.holds(curated)):
            self.files = self._delivery(self.folder)

    def send(self, key: str, document: Document) -> None:
        """Start keeping a file; one without a key is not kept."""
        if key and self.files.has_stores:
            self._documents[key] = document
            self.files.send(key, encode(document()))

    def body_of(self, key: str) -> bytes | None:
        """A file of the run as it was sent, made anew; `None` if none was."""
        acquired, document = self._scope.acquired, self._documents.get(key)
        body = acquired.journal.body_of(key) if acquired else None
        return encode(document()) if body is None and document else body

    def warnings(self) -> Iterator[str]:
        """Said in a container whose end would be that of the output folder, too."""
        folder = self._scope.config.output_dir
        if not (folder and os.environ.get(IN_IMAGE) and MOUNTS.exists()):
            return
        root = Path(folder).resolve()
        if not is_mounted(root, MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")):
            yield (
                f"{root} lies in this container alone and goes when it is removed: mount a folder "
                "or a volume there to keep the run."
            )

    def close(self) -> None:
        self.files.close()
        self.delivery.close()

    def _delivery(self, *stores: ArtifactStore | None) -> Delivery:
        scope = self._scope
        return Delivery(
            [store for store in stores if store],
            backing=self.folder,
            policy=UploadPolicy(tries=scope.config.max_attempts),
            on_full=scope.cancel_token.end,
        )


def is_mounted(path: Path, mounts: str) -> bool:
    """Whether a path lies on what was mounted to last; `mounts` is Linux's mountinfo."""
    rows = [line.split(" ") for line in mounts.splitlines()]
    kinds = {row[4].replace("\\040", " "): row[row.index("-") + 1] for row in rows}
    place = next((one for one in (path, *path.parents) if str(one) in kinds), None)
    return place is not None and place != place.parent and kinds[str(place)] != "tmpfs"
