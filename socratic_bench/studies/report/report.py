"""The report as a whole: its opening, and its sections in reading order."""

from collections.abc import Sequence

from msgspec import Struct

from socratic_bench.documents.calibration import CorrectionDocument
from socratic_bench.studies.report.breakdown import events, failures, findings, kinds
from socratic_bench.studies.report.conditions import samples, settings
from socratic_bench.studies.report.effort import cost, latency
from socratic_bench.studies.report.judges import jury, labels_section
from socratic_bench.studies.report.leaderboard import axes, board, groups
from socratic_bench.studies.report.opening import Opening, opening
from socratic_bench.studies.report.parts import Section
from socratic_bench.studies.report.study import Study, endurances
from socratic_bench.studies.report.trajectories import by_turn, single_and_many, survival


class Report(Struct, frozen=True, kw_only=True):
    """What every format of a report shows but transcripts. `models` start with the best."""

    opening: Opening
    models: Sequence[str]
    sections: Sequence[Section]


def report_of(study: Study, correction: CorrectionDocument | None = None) -> Report:
    """Build the report; sections without data are left out. `correction` has figures by labels, if
    there are any.

    Raises `ImportError` without scipy.
    """
    times = endurances(study)
    candidates = (
        board(study, times),
        axes(study),
        by_turn(study),
        survival(study, times),
        single_and_many(study),
        samples(study),
        *kinds(study),
        events(study),
        *findings(study),
        groups(study),
        cost(study),
        latency(study),
        settings(study),
        jury(study),
        labels_section(correction, study.ranked),
        failures(study),
    )
    return Report(
        opening=opening(study, times, is_labelled=correction is not None),
        models=study.ranked,
        sections=[section for section in candidates if section],
    )
