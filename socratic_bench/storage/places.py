"""Opens the stores that a configuration names, and the journals in them."""

import os
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from socratic_bench.errors import BenchError, UsageError, Words
from socratic_bench.settings import OFFLINE_REGION, CoreConfig
from socratic_bench.storage.delivery import Delivery
from socratic_bench.store_ports import ArtifactStore, Journals
from socratic_bench.types import Json

if TYPE_CHECKING:
    from socratic_bench.storage.folder import FolderStore
    from socratic_bench.storage.s3 import S3Store


def open_folder(
    config: CoreConfig, notice: Callable[[str], None] | None = None
) -> "FolderStore | None":
    """The output folder, if one is asked for; `notice` is told what had to be mended in it."""
    if not config.output_dir:
        return None
    from socratic_bench.storage.folder import FolderStore

    return FolderStore(config.output_dir, notice)


def folder_journals(
    config: CoreConfig, notice: Callable[[str], None] = lambda _: None
) -> Journals | None:
    """The journals in the output folder, if one is asked for; `notice` hears of damaged ones."""
    if not config.output_dir:
        return None
    from socratic_bench.storage.folder_journals import FolderJournals

    return FolderJournals(config.output_dir, notice)


def owner() -> dict[str, Json]:
    """Who holds a journal, for those who meet the lock."""
    return {"pid": os.getpid(), "host": socket.gethostname()}


def open_bucket(
    config: CoreConfig, notice: Callable[[str], None] = lambda _: None
) -> "S3Store | None":
    """The bucket, if one is asked for; the SDK's S3 part is loaded only then.

    `notice` hears, from any thread, of what goes another way than asked for, such as a region.
    """
    if not config.s3_bucket:
        return None
    from socratic_bench.storage.s3 import S3Store

    return S3Store(
        config.s3_bucket,
        prefix=config.s3_prefix,
        region=config.region or OFFLINE_REGION,
        kms_key_id=config.s3_kms_key_id,
        setting="s3_bucket",
        notice=notice,
    )


def bucket_journals(
    store: "S3Store | None",
    delivery: Delivery,
    *,
    sleep: Callable[[float], None],
    on_lost: Callable[[BenchError], object],
    notice: Callable[[str], None],
    keeps_notes: bool = True,
) -> Journals | None:
    """The journals in the bucket that `open_bucket` opened; `None` without one.

    `sleep` is `CancelToken.sleep`, so that waiting ends with the run. `on_lost` is
    `CancelToken.end`: it hears from another thread that somebody else holds the run now, which
    then ends with exit code 4. `notice` tells the user that there is waiting (at most 60 s) for
    what may be a dead process's lease. `keeps_notes`: each request to a model is noted before it
    is sent, which only a run without a folder needs.

    Entries travel with `delivery`: its `settle` waits for them, too, so that no curated file comes
    before them. `create` and `append` ask nothing of S3 and never fail. `newest` and `open` do:
    they take the time that S3 takes, so let a `CancelToken` end the waiting
    (`cancel_token.result(pool.submit(...))`), and raise `UsageError` (exit code 2) or, if S3
    cannot be read, `ArtifactError` (exit code 4).
    `close` the journal only after `settle` or `give_up`: it lets go of the run.
    """
    if store is None:
        return None
    from socratic_bench.storage.bucket_journals import BucketJournals
    from socratic_bench.storage.lease import LeaseTerms

    terms = LeaseTerms(on_lost=on_lost, notice=notice, sleep=sleep)
    return BucketJournals(store.bucket, delivery, terms, keeps_notes=keeps_notes)


def check_stores(stores: Sequence[ArtifactStore]) -> None:
    """Raise `UsageError` with every reason for which nothing can be kept."""
    problems: list[Words] = []
    hints: list[Words] = []
    for store in stores:
        try:
            store.check()
        except UsageError as error:
            problems.extend(error.said)
            hints.extend(error.hints)
    if problems:
        found = UsageError(problems)
        found.hints = tuple(hints)
        raise found
