"""Runs in MLflow: one for each stored run, below one that has the report."""

from collections.abc import Iterator

from socratic_bench.errors import ArtifactError
from socratic_bench.studies.formats.inspect_log import inspect_name
from socratic_bench.studies.report.exports import markdown_of
from socratic_bench.studies.report.study import Rows, Study
from socratic_bench.studies.rows import RunRow

EXPERIMENT = "socratic-runner"
RUN_ID = "socratic.run_id"
PARAMS = {
    "seed": "seed",
    "end_reason": "end_reason",
    "judge": "judge.model",
    "rubric": "judge.rubric",
    "student": "student.mode",
    "temperature": "inputs.temperature",
    "runner_version": "inputs.runner_version",
}


def log_runs(rows: Rows, tracking_uri: str | None) -> list[str]:
    """Log the runs that the experiment does not have yet; returns the ids of MLflow's runs. Without
    a URI the variable MLFLOW_TRACKING_URI or MLflow's own default counts. Raises `ImportError`
    without mlflow, and `ArtifactError` for a server that fails.
    """
    import mlflow
    from mlflow.exceptions import MlflowException

    try:
        if tracking_uri:
            mlflow.set_tracking_uri(tracking_uri)
        experiment = mlflow.set_experiment(EXPERIMENT)
        known = {
            run.data.tags.get(RUN_ID)
            for run in mlflow.search_runs([experiment.experiment_id], output_format="list")
        }
        new = [run for run in rows.runs if run.run_id not in known]
        if not new:
            return []
        ids = []
        with mlflow.start_run(run_name=f"{rows.benchmark.name}: {len(rows.runs)} runs") as parent:
            mlflow.log_text(markdown_of(Study(rows)), "report.md")
            ids.append(parent.info.run_id)
            for run in new:
                with mlflow.start_run(run_name=run.sample_name, nested=True) as logged:
                    mlflow.set_tag(RUN_ID, run.run_id)
                    mlflow.log_params(dict(_params(run)))
                    mlflow.log_metrics(dict(_metrics(run)))
                    ids.append(logged.info.run_id)
    except MlflowException as error:
        raise ArtifactError(f"MLflow does not take the runs: {error}") from error
    return ids


def _params(run: RunRow) -> Iterator[tuple[str, str]]:
    yield "model", inspect_name(run.model)
    yield "scenario", run.sample_name
    for name, path in PARAMS.items():
        if (value := run.at(path)) is not None:
            yield name, str(value)


def _metrics(run: RunRow) -> Iterator[tuple[str, float]]:
    figures = {
        **run.metrics,
        "n_turns": run.n_turns,
        "cost_usd": run.at("cost.total.total_usd"),
        "duration_s": run.at("timestamps.duration_seconds"),
    }
    yield from ((name, float(value)) for name, value in figures.items() if value is not None)
