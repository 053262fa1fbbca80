"""The rubrics by which a judge can be held to labels: those of runs, others, and a user's own."""

from functools import cache
from pathlib import Path
from tomllib import TOMLDecodeError

from socratic_bench.benchmarks.socratic.turn import STUDENT, TUTOR
from socratic_bench.errors import UsageError
from socratic_bench.judging.rubric import load_rubric
from socratic_bench.turns import Rubric

FOLDER = Path(__file__).parent / "rubrics"
FILE_SUFFIX = ".toml"


@cache
def edition(name: str) -> Rubric:
    """One that stands in this folder."""
    return _loaded(FOLDER / f"{name}{FILE_SUFFIX}")


def rubric_named(name: str) -> Rubric:
    """The edition of that name, or the rubric in that file. Raises `UsageError`."""
    is_file = name.endswith(FILE_SUFFIX)
    if not is_file:
        _check_is_known(name)
    try:
        return _loaded(Path(name)) if is_file else edition(name)
    except OSError as error:
        raise UsageError([f"The rubric {name} cannot be read: {error.strerror}."]) from error
    except (TOMLDecodeError, UnicodeDecodeError, ValueError) as error:
        raise UsageError([f"The rubric {name} cannot be used: {error}."]) from error
    except (KeyError, TypeError) as error:
        raise UsageError(
            [f"The rubric {name} lacks a field, or has one too many: {error}."]
        ) from error


def _check_is_known(name: str) -> None:
    known = sorted(file.stem for file in FOLDER.glob(f"*{FILE_SUFFIX}"))
    if name not in known:
        raise UsageError(
            [f"There is no rubric {name!r}."], hint=f"There is {', '.join(known)}, or a TOML file."
        )


def _loaded(file: Path) -> Rubric:
    return load_rubric(file, speakers=(STUDENT, TUTOR), is_dialogue=True)
