"""What agents do stays with them: patches, git directories, files, processes and the network."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from socratic_bench.benchmarks.optimisation.isolation import make_isolation
from socratic_bench.benchmarks.optimisation.plan import make_plan, resolve
from socratic_bench.benchmarks.optimisation.repository import (
    PatchRefusedError,
    Source,
    Workbench,
)
from socratic_bench.benchmarks.optimisation.task import (
    BenchConfig,
    Container,
    read_bench_config,
    read_task,
)
from socratic_bench.errors import UsageError
from tests.optimisation_fixtures import git, make_fixture, patch


def new_file(name):
    head = f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n"
    return f"{head}@@ -0,0 +1 @@\n+1\n".encode()


@pytest.fixture
def fixture(tmp_path):
    return make_fixture(tmp_path / "fixture")


@pytest.fixture
def source(fixture, tmp_path):
    return Source(str(fixture.repo), tmp_path / "cache")


@pytest.fixture
def bench(source, tmp_path):
    return Workbench(tmp_path / "outside.git", source.git_dir)


@pytest.fixture
def base(bench, source):
    return bench.tree_of(source.find("v1.0").sha)


@pytest.fixture
def repo(bench, base, tmp_path):
    folder = tmp_path / "workspace" / "repo"
    bench.export(base, folder)
    bench.begin_history(folder, "v1.0")
    return folder


# Exports and patches


def test_an_export_has_no_history_and_nothing_later(fixture, repo):
    assert git(repo, "rev-list", "--all", "--count") == "1"
    assert git(repo, "describe", "--tags") == "v1.0"
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "remote") == ""
    for human in fixture.humans.values():
        with pytest.raises(subprocess.CalledProcessError):
            git(repo, "cat-file", "-e", human)
    every = git(repo, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    later = git(fixture.repo, "rev-list", "--objects", "HEAD", "--not", "v1.0").split("\n")
    assert not {line.split()[0] for line in later} & set(every)


def test_any_change_is_captured_and_applied_exactly(bench, base, repo):
    (repo / "data.bin").write_bytes(os.urandom(5000))
    (repo / "textkit" / "match.py").rename(repo / "textkit" / "matching.py")
    (repo / "textkit" / "clean.py").write_bytes(b"x = 1\r\ny = 2\r\n")
    (repo / ".gitattributes").write_text("* text=auto eol=lf ident filter=evil\n")
    (repo / "link").symlink_to("textkit/render.py")
    (repo / "run").write_text("#!/bin/sh\n")
    (repo / "run").chmod(0o755)
    (repo / 'a "quoted"\nname').write_text("odd")
    (repo / "junk.pyc").write_text("ignored by the base's rules")
    (repo / ".gitignore").write_text("*\n")
    nested = repo / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    (nested / "file").write_text("in a repository of its own")
    os.mkfifo(repo / "pipe")

    capture = bench.capture(repo, base)
    tree = bench.apply(base, capture.patch)

    assert tree == bench.snapshot(repo, base)[0]
    assert capture.skipped == ("pipe",)
    assert set(capture.changed) == {
        *("data.bin", "textkit/match.py", "textkit/matching.py", "textkit/clean.py"),
        *(".gitattributes", "link", "run", 'a "quoted"\nname', ".gitignore", "nested/file"),
    }
    assert bench.read(tree, "textkit/clean.py") == b"x = 1\r\ny = 2\r\n"
    assert bench.changed(tree, bench.with_paths_of(tree, base, ["textkit"])) == (
        *("textkit/clean.py", "textkit/match.py", "textkit/matching.py"),
    )


@pytest.mark.parametrize(
    ("target", "refusal"),
    [("/etc/passwd", True), ("../outside", True), (".git/config", True), ("textkit", False)],
)
def test_symlinks_out_of_the_tree_are_refused(bench, base, repo, target, refusal):
    (repo / "link").symlink_to(target)
    body = bench.capture(repo, base).patch
    if not refusal:
        assert bench.apply(base, body)
        return
    with pytest.raises(PatchRefusedError) as error:
        bench.apply(base, body)
    assert error.value.name == "symlink_outside"
    assert str(error.value) == f"link points to {target}"


@pytest.mark.torture
def test_fifty_megabytes_are_captured_and_refused_by_name(bench, base, repo):
    (repo / "large").write_bytes(os.urandom(50 * 2**20))
    with pytest.raises(PatchRefusedError) as error:
        bench.apply(base, bench.capture(repo, base).patch)
    assert error.value.name == "too_large"


@pytest.mark.parametrize(
    "body",
    [
        patch("match.human").replace(b"def common", b"def commons"),
        new_file("../x"),
        new_file(".git/x"),
        b"this is no patch\n",
    ],
)
def test_patches_that_do_not_fit_are_refused(bench, base, body):
    with pytest.raises(PatchRefusedError) as error:
        bench.apply(base, body)
    assert error.value.name == "conflict"


def test_git_settings_of_an_agent_run_nothing(bench, base, repo, tmp_path):
    marker = tmp_path / "marker"
    for words in (
        ("core.fsmonitor", f"touch {marker}; false"),
        ("diff.external", f"touch {marker}"),
        ("filter.evil.clean", f"touch {marker}; cat"),
        ("core.hooksPath", str(repo)),
        ("core.worktree", "/"),
    ):
        git(repo, "config", *words)
    (repo / ".gitattributes").write_text("* filter=evil\n")
    (repo / "textkit" / "match.py").write_text("x = 1\n")

    assert bench.capture(repo, base).changed == (".gitattributes", "textkit/match.py")
    assert not marker.exists()


# Isolation


@pytest.fixture(params=["bwrap", "unshare"])
def isolation(request, tmp_path, fixture):
    try:
        return make_isolation(BenchConfig(), request.param, hidden=(str(tmp_path),),
                              environment={"TASK": "1"})  # fmt: skip
    except UsageError as error:
        pytest.skip(error.message)


def run(isolation, repo, command, **options):
    return isolation.run(command, repo.parent, timeout_s=20, **options)


def test_a_command_sees_neither_harness_nor_home_nor_network(
    isolation, repo, fixture, monkeypatch, tmp_path
):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-to-be-seen")
    secret = Path.home() / f".optimisation-{os.getpid()}"
    secret.write_text("not-to-be-seen")
    (tmp_path / "not-to-be-seen").touch()
    try:
        result = run(isolation, repo, f"""
            env; cat /proc/*/environ /proc/*/cmdline; cat {secret}; ls -a {tmp_path} ~ {Path.home()}
            ls {fixture.repo}; touch /etc/x /usr/x {tmp_path}/x; umount {Path.home()} /tmp
            touch here && echo wrote
            python3 - <<'END'
import socket
try:
    socket.create_connection(("1.1.1.1", 53), timeout=2)
except OSError as error:
    print("no network:", error.strerror)
END
        """)  # fmt: skip
    finally:
        secret.unlink()

    assert "not-to-be-seen" not in result.stdout + result.stderr
    assert "TASK=1" in result.stdout
    assert "wrote" in result.stdout
    assert "no network: Network is unreachable" in result.stdout
    assert not (tmp_path / "x").exists()
    assert not Path("/etc/x").exists()


def test_a_home_elsewhere_and_folders_of_credentials_are_hidden(monkeypatch):
    monkeypatch.setenv("HOME", "/srv/user")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/opt/keys/aws")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/etc/aws")
    isolation = make_isolation(BenchConfig(), "none", hidden=("/own",), environment={})
    assert isolation.hidden == ("/own", "/srv/user", "/srv/user/.aws", "/opt/keys")
    monkeypatch.setenv("HOME", "/")
    isolation = make_isolation(BenchConfig(), "none", hidden=(), environment={})
    assert isolation.hidden == ("/.aws", "/opt/keys")


def test_a_command_has_a_tmp_of_its_own_and_may_be_kept_from_writing(isolation, repo):
    first = run(isolation, repo, "echo 1 | tee /tmp/a /dev/shm/a; touch b", writable=False)
    assert (first.stdout, first.exit_code) == ("1\n", 1)
    second = run(isolation, repo, "ls /tmp/a /dev/shm/a b")
    assert (second.stdout, second.exit_code) == ("", 2)


def test_loopback_works_in_isolation(isolation, repo):
    connect = (
        "s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname())"
    )
    script = f"import socket; {connect}; print('met')"
    assert run(isolation, repo, f'python3 -c "{script}"').stdout == "met\n"


@pytest.mark.parametrize("level", ["bwrap", "unshare", "none"])
def test_all_processes_end_with_the_command(level, repo):
    try:
        isolation = make_isolation(BenchConfig(), level, hidden=(), environment={})
    except UsageError as error:
        pytest.skip(error.message)
    command = (
        f"trap 'echo asked > {repo}/asked; exit 1' TERM; (setsid sleep 4242 &) ; "
        f"echo started; sleep 4343 & wait"
    )
    start = time.monotonic()
    result = isolation.run(command, repo.parent, timeout_s=1.0)

    assert result.stopped == "timeout"
    assert result.stdout == "started\n"
    assert (repo / "asked").exists()
    assert time.monotonic() - start < 9
    processes = subprocess.check_output(["ps", "-eo", "args"], text=True)
    assert "sleep 4242" not in processes
    assert "sleep 4343" not in processes


def test_output_is_bounded_and_a_run_can_be_stopped(repo):
    isolation = make_isolation(BenchConfig(), "none", hidden=(), environment={})
    result = isolation.run("yes | head -c 5000000; echo end", repo.parent, timeout_s=20)
    assert len(result.stdout) < 2_100_000
    assert result.stdout.endswith("end\n")
    stopped = isolation.run("sleep 4444", repo.parent, timeout_s=20, should_stop=lambda: "budget")
    assert (stopped.stopped, stopped.exit_code) == ("budget", -15)


def test_cores_and_memory_are_limited(repo):
    config = BenchConfig(container=Container(cpus=1, memory_mb=500))
    isolation = make_isolation(config, "none", hidden=(), environment={})
    script = "import os; print(len(os.sched_getaffinity(0))); bytearray(600 * 2**20)"
    result = run(isolation, repo, f"python3 -c '{script}'")
    assert result.stdout == "1\n"
    assert "MemoryError" in result.stderr


@pytest.mark.parametrize("level", ["bwrap", "unshare"])
def test_a_command_ends_with_a_killed_harness(level, repo, fixture):
    code = (
        "import sys; from pathlib import Path; from socratic_bench.benchmarks.optimisation import "
        "isolation, task; apart = isolation.make_isolation(task.BenchConfig(), sys.argv[1], "
        "hidden=(), environment={}); apart.run('echo > began; sleep 4545', Path(sys.argv[2]), "
        "timeout_s=99)"
    )
    words = [sys.executable, "-c", code, level, str(repo.parent)]
    with subprocess.Popen(words, stderr=subprocess.PIPE) as harness:
        while not (repo / "began").exists() and harness.poll() is None:
            time.sleep(0.02)
        harness.kill()
        said = harness.stderr.read().decode()
    if "cannot be isolated here" in said:
        pytest.skip(said)
    for _ in range(100):
        processes = subprocess.check_output(["ps", "-eo", "args"], text=True)
        if "sleep 4545" not in processes:
            break
        time.sleep(0.05)
    assert "sleep 4545" not in processes


def test_a_container_is_a_command_template(repo):
    """A stand-in for a container engine prints its words."""
    template = "/bin/echo run -v {workdir}:{workdir}:{mode} --cpus {cpus} sh -c {command}"
    isolation = make_isolation(
        BenchConfig(container=Container(command="/bin/sh -c {command} -- {workdir}", cpus=2)),
        "auto", hidden=(), environment={"A": "it's"},
    )  # fmt: skip
    assert isolation.level == "container"
    assert run(isolation, repo, "echo $A $PWD").stdout == f"it's {repo}\n"
    config = BenchConfig(container=Container(command=template))
    with pytest.raises(UsageError, match="container: run -v"):
        make_isolation(config, "auto", hidden=(), environment={})


# Bad input, all of it at once


def test_mistakes_of_a_plan_are_named_together(fixture, source):
    human = fixture.humans["match"]
    fixture.commits.write_text(
        f"# list\n{human}\n{human[:12]} parent=3\nabcdef1 | 2026 | x\n{human} nowhere\n"
        f"{human} | again\n"
    )
    (fixture.repo / "README.md").write_text("dirty")
    with pytest.raises(UsageError) as error:
        make_plan(read_task(str(fixture.task)), source, str(fixture.commits))
    place = f"{fixture.commits}, line"
    assert error.value.problems == (
        "The source repository has changes that are not committed: README.md.",
        f"{place} 3: {human} has 1 parents, and no 3.",
        f"{place} 4: there is no commit 'abcdef1'.",
        f"{place} 5: there is no commit 'nowhere'.",
        f"The commit {human} is there 2 times.",
    )


def test_a_plan_of_commits_and_of_pairs(fixture, source):
    human = fixture.humans["clean"]
    plan = make_plan(read_task(str(fixture.task)), source, str(fixture.commits))
    assert [item.item_id for item in plan.items] == [
        f"textkit_{n:03}_{sha[:8]}" for n, sha in enumerate(fixture.humans.values())
    ]
    assert plan.items[1].pre == fixture.humans["match"]
    assert resolve(plan, source) == plan
    text = fixture.task.read_text().replace(
        '"repo": {', f'"repo": {{"human_commit": "{human[:9]}", "pre_commit": "v1.0", '
    )
    fixture.task.write_text(text)
    (single,) = make_plan(read_task(str(fixture.task)), source).items
    assert (single.human, single.pre) == (human, git(fixture.repo, "rev-parse", "v1.0"))


def test_mistakes_of_a_task_are_named_together(tmp_path):
    path = tmp_path / "task.toml"
    path.write_text("""
        id = "a b"
        test_cmd = "pytest"
        min_effect = 2.0
        [[workloads]]
        id = "w"
        command = "python {task}/w.py"
        files = ["w.py", "../x"]
    """)
    with pytest.raises(UsageError) as error:
        read_task(str(path))
    assert len(error.value.problems) == 7
    path.write_text('id = "a"\nunknown = 1\n')
    with pytest.raises(UsageError, match="unknown"):
        read_task(str(path))


def test_agents_of_a_bench_config(tmp_path):
    path = tmp_path / "bench.yaml"
    path.write_text(
        "agents:\n  default: trae\n  trae:\n    cli: trae {task_file}\n    args: {max_steps: 7}\n"
        "    time_budget_minutes: 90\n"
    )
    agent = read_bench_config(str(path)).agent()
    assert (agent.cli, agent.args.max_steps, agent.time_budget_minutes) == (
        *("trae {task_file}", 7, 90.0),
    )
    path.write_text("agents: {default: other, x: {}}\n")
    with pytest.raises(UsageError, match=r"agents.x needs either"):
        read_bench_config(str(path))


def test_a_container_without_input_is_refused_and_a_late_one_is_stopped(repo, tmp_path):
    no_input = """/bin/sh -c 'exec </dev/null; eval "$0"' {command} {workdir}"""
    deaf = BenchConfig(container=Container(command=no_input))
    with pytest.raises(UsageError, match="docker run does without -i"):
        make_isolation(deaf, "auto", hidden=(), environment={})
    container = Container(
        command="/bin/sh -c {command} {name} {workdir}",
        stop=f"/bin/sh -c 'echo $0 > {tmp_path}/stopped' {{name}}",
    )
    isolation = make_isolation(BenchConfig(container=container), "auto", hidden=(), environment={})
    with isolation.start("sleep 4646", repo.parent) as process:
        isolation.end(process, repo.parent, grace_s=0)
    assert (tmp_path / "stopped").read_text().strip() == process.args[3]
