"""The stores of one run: checked before anything is called, and the files sent to them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from socratic_bench.documents import encode
from socratic_bench.models.cancel import run_cancellable
from socratic_bench.ports.store import ArtifactStore, Journals
from socratic_bench.redaction import known_secrets
from socratic_bench.runs.context import RunContext
from socratic_bench.storage.delivery import Delivery, UploadPolicy
from socratic_bench.storage.stores import (
    bucket_journals,
    check_stores,
    folder_journals,
    open_bucket,
    open_folder,
)
from socratic_bench.types import Json

if TYPE_CHECKING:  # the S3 part loads the SDK, and only runs with a bucket need it
    from socratic_bench.storage.s3 import S3Store

IN_IMAGE = "RUNNER_IN_IMAGE"  # set in the Dockerfile
MOUNTS = Path("/proc/self/mountinfo")
Document = Callable[[], dict[str, Json]]


class RunStores:
    """The stores of one run, both optional: an output folder and a bucket. `delivery` carries the
    journals to them, and `files` all other files.
    """

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self.folder = open_folder(context.config, context.listener.on_notice)
        self.bucket: S3Store | None = None
        self._documents: dict[str, Document] = {}
        self._bodies: dict[str, bytes] = {}
        self.delivery = self.files = self._new_delivery(self.folder)

    def open_bucket(self) -> None:
        """Connect to the bucket. Raises what ends the run meanwhile: credentials can be slow."""
        context = self._context
        if context.config.s3_bucket:
            self.bucket = run_cancellable(
                lambda: open_bucket(context.config, context.notices.add), context.cancel_token
            )
            self.delivery = self.files = self._new_delivery(self.folder, self.bucket)

    def checked_journals(self) -> list[Journals]:
        """The journals of the stores, the folder's first. Raises `UsageError` with every reason for
        which a store cannot be used.
        """
        context = self._context
        if not context.plan.order:  # a sweep has checked them before its first cell
            check_stores([store for store in (self.folder, self.bucket) if store])
        in_bucket = bucket_journals(
            self.bucket,
            self.delivery,
            sleep=context.cancel_token.sleep,
            on_lost=context.cancel_token.end,
            notice=context.listener.on_notice,
            # A budget has to know of every request, also if the folder is lost.
            keeps_notes=self.folder is None or context.config.max_cost_usd is not None,
        )
        in_folder = folder_journals(context.config, context.listener.on_notice)
        return [journals for journals in (in_folder, in_bucket) if journals]

    def skip_bucket_if_delivered(self, curated_key: str) -> None:
        """Of a complete run that the bucket has whole, send files only to the folder. A folder is
        cheap to look through and to repair; a bucket's files are never half there.
        """
        if not self.bucket or self.bucket.holds(curated_key):
            self.files = self._new_delivery(self.folder)

    def send(self, key: str, document: Document) -> None:
        """Begin to store a file; one with an empty key is not stored."""
        if key and self.files.has_stores:
            self._documents[key] = document
            self.files.send(key, encode(document()))

    def send_file(self, key: str, body: bytes) -> None:
        """Begin to store a file that is no document; known secrets in it are masked."""
        if key and self.files.has_stores:
            text = known_secrets().masked(body.decode("utf-8", "surrogateescape"))
            body = text.encode("utf-8", "surrogateescape")
            self._bodies[key] = body
            self.files.send(key, body)

    def body_of(self, key: str) -> bytes | None:
        """The content of a file that was sent, made again; `None` if none was."""
        document = self._documents.get(key)
        return encode(document()) if document else self._bodies.get(key)

    def warnings(self) -> Iterator[str]:
        """A warning if the output folder goes with the container that the run is in."""
        folder = self._context.config.output_dir
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

    def _new_delivery(self, *stores: ArtifactStore | None) -> Delivery:
        context = self._context
        return Delivery(
            [store for store in stores if store],
            backing=self.folder,
            policy=UploadPolicy(tries=context.config.max_attempts),
            on_full=context.cancel_token.end,
        )


def is_mounted(path: Path, mounts: str) -> bool:
    """Whether a path lies on a mounted file system; `mounts` is Linux's mountinfo. The file system
    that was mounted last counts, and the container's own does not.
    """
    rows = [line.split(" ") for line in mounts.splitlines()]
    kinds = {row[4].replace("\\040", " "): row[row.index("-") + 1] for row in rows}
    place = next((parent for parent in (path, *path.parents) if str(parent) in kinds), None)
    return place is not None and place != place.parent and kinds[str(place)] != "tmpfs"
