"""The doctor's look at the models and stores of a sweep: beside its first cells, or before them."""

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress

from msgspec import Struct

from socratic_bench.concurrency import start_thread
from socratic_bench.documents.doctor import CheckEntry, DoctorDocument
from socratic_bench.errors import BenchError, InternalError, ModelError
from socratic_bench.models.cancel import CancelToken, run_cancellable
from socratic_bench.runs.services import Services
from socratic_bench.studies.sweep.request import SweepRequest
from socratic_bench.types import plural

# The first cells' first requests are sent meanwhile.
SENDING_S = 0.1
# A look that is slower than all cells is waited for so long, and so long once it is told to end.
PATIENCE_S = 5.0
ENDING_S = 1.0


class Preflight(Struct, frozen=True, kw_only=True):
    """What is looked at: the models of the `tested`, each in its role, and the stores.

    What fails is told by `notice`. If it comes first, the sweep ends by it before any cell begins.
    Nothing is looked at on the embedded endpoint, where nothing can fail, unless it comes first.
    """

    asked: SweepRequest
    tested: Collection[str]
    notice: Callable[[str], None]
    call: Callable[[str], str] = str

    @contextmanager
    def over(
        self, services: Services, token: CancelToken, called: threading.Event
    ) -> Iterator[None]:
        """Around the playing of cells with these services, of which `called` tells the first call,
        or that none is to be waited for.
        """
        if self.asked.settings.strict:
            self._first(services, token)
            yield
            return
        if self.asked.grid.base.offline:
            yield
            return
        own = token.sibling()
        with token.parent_of(own):
            looking = start_thread(lambda: self._beside(services, own, called))
            try:
                yield
            finally:
                called.set()
                if token.error is None:
                    wait([looking], PATIENCE_S)
                own.end(ModelError("The sweep is over.", code="over", end_reason="interrupted"))
                self._await(looking)

    def _first(self, services: Services, token: CancelToken) -> None:
        try:
            found = run_cancellable(lambda: self._found(services, token), token)
        except BenchError as error:
            token.end(error)
            return
        failed = self._tell(found)
        if failed:
            token.end(_refusal(failed))

    def _beside(
        self, services: Services, token: CancelToken, called: threading.Event
    ) -> list[CheckEntry]:
        called.wait()
        with suppress(BenchError):  # what is looked at with a token that has ended is unknown
            token.sleep(SENDING_S)
        return self._tell(self._found(services, token))

    def _await(self, looking: "Future[list[CheckEntry]]") -> None:
        """What was found by then is told before the sweep's end; a defect ends no sweep."""
        wait([looking], ENDING_S)
        if looking.done() and isinstance(defect := looking.exception(), Exception):
            self.notice(InternalError.of(defect).message)

    def _found(self, services: Services, token: CancelToken) -> DoctorDocument:
        from socratic_bench.runs.doctor import diagnose
        from socratic_bench.studies.sweep.targets import targets_of

        return diagnose(
            targets_of(self.asked, self.tested),
            stores=[self.asked.grid.base],
            services=services,
            cancel_token=token,
            call=self.call,
        )

    def _tell(self, found: DoctorDocument) -> list[CheckEntry]:
        failed = [check for check in found.all_checks if check.status == "failed"]
        for check in failed:
            message = check.message.rstrip(".")
            self.notice(f"{check.subject}: {message}. {check.hint or ''}".rstrip())
        return failed


def _refusal(failed: list[CheckEntry]) -> ModelError:
    first = failed[0]
    return ModelError(
        f"Nothing was played: {plural(len(failed), 'check')} failed. {first.subject}: "
        f"{first.message}",
        code=first.code or "strict",
        end_reason="access",
        hint=first.hint,
    )
