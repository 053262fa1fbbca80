"""Runs git where no agent can reach it: exports trees, captures what changed, applies patches.

Every git directory here is the harness's own, beside the tree and never in it: no configuration,
attribute, hook or ignore file of an agent or of the source repository has an effect. Files are
taken byte by byte.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from msgspec import Struct

from socratic_bench.errors import UsageError

MAX_PATCH_BYTES = 20 * 2**20
_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (
        ("NAME", "benchmark"),
        ("EMAIL", "benchmark@localhost"),
        ("DATE", "2020-01-01T00:00:00Z"),
    )
}
_ENVIRONMENT = {
    "PATH": os.defpath,
    "LC_ALL": "C",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    **_IDENTITY,
}
_OPTIONS = {
    "safe.directory": "*",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.autocrlf": "false",
    "core.quotePath": "false",
    "diff.external": "",
    "gc.auto": "0",
}
_NO_CONVERSION = "* -text -ident -filter !diff -working-tree-encoding !eol\n"
_SYMLINK, _SUBMODULE = "120000", "160000"


class GitError(Exception):
    """A git command failed; the message is what git said."""


class PatchRefusedError(Exception):
    """A patch is not applied: `name` says by which rule, the message why."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class Commit(Struct, frozen=True, kw_only=True):
    """A commit of the source repository, its parents, and its message."""

    sha: str
    parents: tuple[str, ...]
    message: str


class Capture(Struct, frozen=True, kw_only=True):
    """What an agent has changed: the patch, the files of it, and files that git cannot hold."""

    patch: bytes
    changed: tuple[str, ...]
    skipped: tuple[str, ...] = ()


class Source:
    """The source repository: read, never written. A URL is cloned into `cache` once."""

    def __init__(self, place: str, cache: Path) -> None:
        self._folder = Path(place) if Path(place).exists() else _clone(place, cache)
        try:
            self.git_dir = Path(self._git("rev-parse", "--absolute-git-dir").strip())
        except GitError as error:
            raise UsageError([f"{place} is no git repository: {error}."]) from error
        if (self.git_dir / "objects" / "info" / "alternates").exists() or (
            self.git_dir / "commondir"
        ).exists():
            common = self._git("rev-parse", "--git-common-dir").strip()
            self.git_dir = (self._folder / common).resolve()

    def dirty_files(self) -> Sequence[str]:
        """Files that differ from the last commit; of a bare repository there are none."""
        if self._git("rev-parse", "--is-bare-repository").strip() == "true":
            return ()
        lines = self._git("status", "--porcelain", "-z", "--untracked-files=no").split("\0")
        return [line[3:] for line in lines if line]

    def find(self, name: str) -> Commit | None:
        """The commit of that name; `None` if there is none, or more than one."""
        if not name or name.startswith("-"):
            return None
        try:
            form = "%H%x00%P%x00%B"
            words = ("log", "-1", f"--format={form}", f"{name}^{{commit}}", "--")
            sha, parents, message = self._git(*words).split("\0", 2)
        except (GitError, ValueError):
            return None
        return Commit(sha=sha, parents=tuple(parents.split()), message=message.strip())

    def version_tag(self, sha: str) -> str | None:
        """The newest tag before a commit, from which builds take their version."""
        try:
            return self._git("describe", "--tags", "--abbrev=0", sha).strip()
        except GitError:
            return None

    def _git(self, *words: str) -> str:
        return run_git(*words, folder=self._folder).decode(errors="replace")


class Workbench:
    """The harness's own git directory for one item; it borrows the objects of the source."""

    def __init__(self, git_dir: Path, source_git_dir: Path) -> None:
        self._git_dir = git_dir.absolute()
        if not (git_dir / "HEAD").exists():
            run_git("init", "-q", "--bare", "--template=", str(git_dir))
            (git_dir / "info").mkdir(exist_ok=True)
            (git_dir / "info" / "attributes").write_text(_NO_CONVERSION, encoding="ascii")
            alternates = git_dir / "objects" / "info" / "alternates"
            alternates.parent.mkdir(parents=True, exist_ok=True)
            alternates.write_text(f"{source_git_dir.resolve() / 'objects'}\n", encoding="utf-8")
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}

    def tree_of(self, commit: str) -> str:
        return self._git("rev-parse", f"{commit}^{{tree}}").decode().strip()

    def export(self, tree: str, folder: Path) -> None:
        """Write the files of a tree into an empty folder, without any history."""
        folder.mkdir(parents=True, exist_ok=True)
        with self._index() as index:
            self._git("read-tree", tree, index=index)
            words = ("checkout-index", "-a", "-f")
            variables = {"GIT_INDEX_FILE": f"{index}/index"}
            run_git(*words, git_dir=self._git_dir, work_tree=folder.absolute(), folder=folder,
                    environment=variables)  # fmt: skip

    def begin_history(self, folder: Path, tag: str | None) -> None:
        """Make a repository of an exported tree: one commit, and the tag of its version."""
        options = ("-c", "commit.gpgSign=false", "-c", "core.excludesFile=")
        run_git("init", "-q", "--template=", "-b", "main", folder=folder)
        run_git("add", "-A", "-f", folder=folder)
        run_git(*options, "commit", "-q", "--allow-empty", "-m", "Base", folder=folder)
        if tag:
            run_git("tag", tag, folder=folder)

    def snapshot(self, folder: Path, base: str) -> tuple[str, tuple[str, ...]]:
        """Store the files of a folder as a tree; returns it, and files that git cannot hold.

        Files that the base's own ignore rules name are left out.
        """
        entries, skipped = _walk(folder)
        before = self._files(base)
        ignored = self._ignored(base, [name for name in entries if name not in before])
        files = self._blobs(folder, [name for name in entries if name not in ignored])
        submodules = {name: entry for name, entry in before.items() if entry[0] == _SUBMODULE}
        return self._write_tree({**files, **submodules}), tuple(skipped)

    def capture(self, folder: Path, base: str) -> Capture:
        """What is different in a folder from the tree `base`."""
        tree, skipped = self.snapshot(folder, base)
        return Capture(
            patch=self.diff(base, tree), changed=self.changed(base, tree), skipped=skipped
        )

    def diff(self, before: str, after: str) -> bytes:
        """The patch from one tree to another, by which the other one can be made exactly."""
        return self._git("diff", "--binary", "--full-index", "--no-ext-diff", "--no-textconv",
                         "--no-renames", "--no-color", "--src-prefix=a/", "--dst-prefix=b/",
                         before, after, "--")  # fmt: skip

    def changed(self, before: str, after: str) -> tuple[str, ...]:
        words = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", before, after, "--")
        return tuple(os.fsdecode(name) for name in self._git(*words).split(b"\0") if name)

    def apply(self, base: str, patch: bytes) -> str:
        """The tree that a patch makes of another one. Raises `PatchRefusedError`.

        There is no fuzz and no partial application.
        """
        if len(patch) > MAX_PATCH_BYTES:
            raise PatchRefusedError("too_large", f"{len(patch)} bytes of at most {MAX_PATCH_BYTES}")
        with self._index() as index:
            self._git("read-tree", base, index=index)
            if patch.strip():
                try:
                    self._git("apply", "--cached", "--binary", "--whitespace=nowarn", "-",
                              index=index, given=patch)  # fmt: skip
                except GitError as error:
                    raise PatchRefusedError("conflict", str(error)) from error
            tree = self._git("write-tree", index=index).decode().strip()
        self._refuse_unsafe(base, tree)
        return tree

    def with_paths_of(self, tree: str, base: str, patterns: Sequence[str]) -> str:
        """The tree with all files that match the patterns as they are in another one."""
        ours = {n: entry for n, entry in self._files(tree).items() if not matches(n, patterns)}
        theirs = {n: entry for n, entry in self._files(base).items() if matches(n, patterns)}
        return self._write_tree({**ours, **theirs})

    def read(self, tree: str, name: str) -> bytes | None:
        """The content of a file in a tree; `None` if there is none."""
        try:
            return self._git("cat-file", "blob", f"{tree}:{name}")
        except GitError:
            return None

    def _write_tree(self, files: Mapping[str, tuple[str, str]]) -> str:
        lines = b"".join(
            f"{mode} {sha}\t".encode() + os.fsencode(name) + b"\0"
            for name, (mode, sha) in files.items()
        )
        with self._index() as index:
            self._git("read-tree", "--empty", index=index)
            self._git("update-index", "-z", "--index-info", index=index, given=lines)
            return self._git("write-tree", index=index).decode().strip()

    def _refuse_unsafe(self, base: str, tree: str) -> None:
        before = self._files(base)
        for name, (mode, sha) in self._files(tree).items():
            if before.get(name) == (mode, sha):
                continue
            if mode == _SUBMODULE:
                raise PatchRefusedError("submodule", f"{name} is a submodule")
            if mode == _SYMLINK:
                target = self._git("cat-file", "blob", sha).decode(errors="replace")
                if _leaves_tree(name, target):
                    raise PatchRefusedError("symlink_outside", f"{name} points to {target}")

    def _files(self, tree: str) -> dict[str, tuple[str, str]]:
        """Mode and object by name."""
        files: dict[str, tuple[str, str]] = {}
        for line in self._git("ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0"):
            if line:
                head, _, name = line.partition(b"\t")
                mode, _, sha = head.decode().split()
                files[os.fsdecode(name)] = mode, sha
        return files

    def _blobs(self, folder: Path, names: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Mode and object of each file; what has not changed since the last time is not read."""
        marks: dict[str, tuple[int, ...]] = {}
        modes: dict[str, str] = {}
        blobs: dict[str, str] = {}
        for name in names:
            status = (folder / name).lstat()
            marks[name] = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            is_link = stat.S_ISLNK(status.st_mode)
            is_program = status.st_mode & stat.S_IXUSR
            modes[name] = _SYMLINK if is_link else "100755" if is_program else "100644"
            mark, sha = self._known.get(str(folder / name), ((), ""))
            if mark == marks[name]:
                blobs[name] = sha
            elif is_link or "\n" in name:
                path = folder / name
                content = os.fsencode(path.readlink()) if is_link else path.read_bytes()
                words = ("hash-object", "-w", "--no-filters", "--stdin")
                blobs[name] = self._git(*words, given=content).decode().strip()
        rest = [name for name in names if name not in blobs]
        if rest:
            paths = b"".join(b"./" + os.fsencode(name) + b"\n" for name in rest)
            words = ("hash-object", "-w", "--no-filters", "--stdin-paths")
            shas = run_git(*words, folder=folder, git_dir=self._git_dir.resolve(), given=paths)
            blobs.update(zip(rest, shas.decode().split(), strict=True))
        for name in names:
            self._known[str(folder / name)] = marks[name], blobs[name]
        return {name: (modes[name], blobs[name]) for name in names}

    def _ignored(self, base: str, names: Sequence[str]) -> set[str]:
        """Those names that the ignore files of a tree name."""
        rules = [name for name in self._files(base) if PurePosixPath(name).name == ".gitignore"]
        if not names or not rules:
            return set()
        with tempfile.TemporaryDirectory(prefix="optimisation-") as place:
            for rule in rules:
                path = Path(place) / rule
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self.read(base, rule) or b"")
            given = b"\0".join(map(os.fsencode, names)) + b"\0"
            words = ("check-ignore", "-z", "--stdin", "--no-index")
            tree = Path(place)
            output = run_git(*words, git_dir=self._git_dir, work_tree=tree, folder=tree,
                             given=given, accepted=(0, 1))  # fmt: skip
        return {os.fsdecode(name) for name in output.split(b"\0") if name}

    def _index(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="index-", dir=self._git_dir)

    def _git(self, *words: str, index: str | None = None, given: bytes = b"") -> bytes:
        variables = {"GIT_INDEX_FILE": f"{index}/index"} if index else {}
        return run_git(*words, git_dir=self._git_dir, given=given, environment=variables)


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a file is one of the patterns, which are globs, or is in a folder of them."""
    path = PurePosixPath(name)
    places = [str(place) for place in (path, *path.parents)][:-1]
    return any(fnmatchcase(place, pattern.rstrip("/")) for place in places for pattern in patterns)


def run_git(
    *words: str,
    folder: Path | None = None,
    git_dir: Path | None = None,
    work_tree: Path | None = None,
    given: bytes = b"",
    environment: Mapping[str, str] | None = None,
    accepted: Sequence[int] = (0,),
) -> bytes:
    """The output of a git command without any configuration of users. Raises `GitError`."""
    options = [word for name, value in _OPTIONS.items() for word in ("-c", f"{name}={value}")]
    places = [f"--git-dir={git_dir}"] if git_dir else []
    places += [f"--work-tree={work_tree}"] if work_tree else []
    result = subprocess.run(  # noqa: S603 -- git, found by the plain search path
        ["git", *options, *places, *words],  # noqa: S607
        cwd=folder,
        env={**_ENVIRONMENT, **(environment or {})},
        check=False,
        capture_output=True,
        input=given,
    )
    if result.returncode not in accepted:
        message = result.stderr.decode(errors="replace").strip()
        raise GitError(message or f"git {words[0]} ended with {result.returncode}")
    return result.stdout


def _clone(url: str, cache: Path) -> Path:
    folder = cache / re.sub(r"[^A-Za-z0-9.-]+", "_", url)
    if not folder.exists():
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        cache.mkdir(parents=True, exist_ok=True)
        try:
            run_git("clone", "-q", "--mirror", "--", url, str(part))
        except GitError as error:
            raise UsageError([f"{url} cannot be cloned: {error}."]) from error
        part.rename(folder)
    return folder


def _walk(folder: Path) -> tuple[list[str], list[str]]:
    """Files and symlinks of a folder, without any `.git`; and what is neither."""
    files: list[str] = []
    skipped: list[str] = []
    for place, folders, names in os.walk(folder, followlinks=False):
        relative = Path(place).relative_to(folder)
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        folders[:] = sorted(n for n in folders if n.lower() != ".git" and n not in links)
        for name in sorted((*names, *links)):
            path = str(relative / name)
            if name.lower() == ".git":
                continue
            mode = (Path(place) / name).lstat().st_mode
            is_file = stat.S_ISREG(mode) or stat.S_ISLNK(mode)
            (files if is_file else skipped).append(path)
    return files, skipped


def _leaves_tree(name: str, target: str) -> bool:
    """Whether a symlink points out of the tree that it is in, or into its git directory."""
    if target.startswith("/"):
        return True
    parts = os.path.normpath(str(PurePosixPath(name).parent / target)).split("/")
    return parts[0] in ("..", ".git")
