"""Queue: plans in order, started one after the other while a dashboard is open."""

import asyncio

from nicegui import ui

from socratic_bench.dashboard.jobs import Job
from socratic_bench.dashboard.page import Action, View, render
from socratic_bench.dashboard.workspace import Workspace

EXIT_STOPPED = (130, 143)


def register(workspace: Workspace) -> None:
    """Serve the pages."""

    @ui.page("/queue")
    def queue() -> None:
        view = View("Queue", render("queue.html"), store=workspace.place, current="/queue")

        async def show() -> None:
            all_jobs = await asyncio.to_thread(workspace.jobs.all)
            rows = render("queue_rows.html", all_jobs=all_jobs, jobs=workspace.jobs, text=job_state)
            view.update({"queue": rows})

        async def perform(action: Action) -> None:
            await perform_on_job(workspace, action)
            await show()

        view.on_action(perform)
        view.poll(workspace.poll_s, show)

    @ui.page("/jobs/{job_id}")
    async def job_page(job_id: str) -> None:
        view = View("Starting", render("job.html"), store=workspace.place)

        async def show() -> None:
            job = await asyncio.to_thread(workspace.jobs.get, job_id)
            if job is None:
                view.say("There is no such job.")
            elif job.sweep_id:
                view.go(f"/sweeps/{job.sweep_id}")
            else:
                log = await asyncio.to_thread(workspace.jobs.log, job)
                state = render("job_state.html", job=job, jobs=workspace.jobs, text=job_state)
                view.update({"job": state, "log": render("text.html", text=log)})

        view.poll(workspace.poll_s, show)


async def perform_on_job(workspace: Workspace, action: Action) -> None:
    """Do what a button of a job says; its value is the job's id."""
    jobs = workspace.jobs
    job = await asyncio.to_thread(jobs.get, action.value)
    if job is None:
        return
    if action.action in ("start", "go-on"):
        await asyncio.to_thread(jobs.start, job)
    elif action.action == "retry":
        await asyncio.to_thread(lambda: jobs.start(job, retries_failed=True))
    elif action.action == "stop":
        await asyncio.to_thread(jobs.stop, job)
    elif action.action == "remove":
        await asyncio.to_thread(jobs.remove, job)
    elif action.action == "forget":
        await asyncio.to_thread(jobs.forget, job)


def job_state(job: Job) -> str:
    """The state of a job in words."""
    if job.state == "running":
        return "running" if job.is_here else f"running on {job.host}"
    if job.state == "queued":
        return "waits"
    if job.exit_code in EXIT_STOPPED:
        return "stopped"
    if job.exit_code in (None, 0):
        return "ended" if job.exit_code is None else "complete"
    return f"ended with exit code {job.exit_code}"
