"""The table of settings: what is made of it, and what another benchmark adds to it."""

import runpy
from typing import Annotated, Any

import pytest
from msgspec.structs import replace

from socratic_bench import Gate, RunConfig, UsageError
from socratic_bench import run as play
from socratic_bench.benchmarks.socratic.scenarios.loading import builtin_ids, load_builtin
from socratic_bench.benchmarks.socratic.scenarios.scenario import FAMILIES
from socratic_bench.benchmarks.socratic.settings import Settings as SocraticSettings
from socratic_bench.errors import Problem
from socratic_bench.generation import GenerateConfig
from socratic_bench.journal.log import request_sha256
from socratic_bench.runs import prepare
from socratic_bench.setting import GROUPS, Setting
from socratic_bench.settings import (
    CoreConfig,
    Sources,
    compose,
    flag_names,
    part_of,
    read_config,
    table,
)
from socratic_bench.settings.table import listed
from socratic_bench.types import Message, Request
from tests.command import OFFLINE, ROOT, run

Answers = Annotated[
    str | None,
    Setting("dialogue", "FILE", "right answers", variables=("RUNNER_ANSWERS",)),
]


class ExactSettings(CoreConfig, frozen=True, kw_only=True):
    """Those of a benchmark with one answer to each question."""

    answers: Answers = None
    closeness: Annotated[float, Setting("judging", "S", "what counts as right", low=0, high=1)] = (
        1.0
    )


BOTH: Any = compose("Both", {"socratic": SocraticSettings, "exact": ExactSettings})


def read(*, environ: dict[str, str] | None = None, **flags: Any) -> tuple[Any, list[str]]:
    sources = Sources(
        flags={"model": "m", **{name.replace("_", "-"): word for name, word in flags.items()}},
        environ={"BEDROCK_MODEL_IDS": '["m"]', "AWS_REGION": "us-east-1", **(environ or {})},
        read_stdin=str,
        profile_region=lambda: None,
        offline_models=lambda: (),
    )
    config, problems = read_config(BOTH, sources)
    return config, [problem.render(flag_names((BOTH,))) for problem in problems]


def test_what_is_made_of_the_table_is_what_it_would_be_made_of_it_now(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    made = runpy.run_path(str(ROOT / "tools" / "tables.py"))["made"]()

    stale = [path.name for path, content in made.items() if path.read_text() != content]
    assert stale == [], "make docs"


def test_every_field_of_a_run_is_in_the_table():
    assert {*table(RunConfig)} == {*RunConfig.__struct_fields__}


class OfItsOwn(CoreConfig, frozen=True, kw_only=True):
    n_cases: Annotated[int, Setting("exact", "N", "cases", low=1)] = 3


OF_COMMANDS = ("sweep", "pipelines and traces")  # groups of settings that no run has


def test_a_benchmark_may_have_a_group_of_its_name_after_all_others():
    groups = [*dict.fromkeys(one.group for one in listed((compose("One", {"exact": OfItsOwn}),)))]

    assert groups == [*(name for name in GROUPS if name not in OF_COMMANDS), "exact"]
    with pytest.raises(ValueError, match="not in tuple"):
        listed((compose("One", {"other": OfItsOwn}),))


class TestAnotherBenchmark:
    def test_its_settings_are_read_and_checked_like_all_others(self):
        config, problems = read(
            benchmark="exact", answers="a.json", closeness="0.5", environ={"RUNNER_ANSWERS": "b"}
        )

        assert (config.answers, config.closeness, problems) == ("a.json", 0.5, [])
        assert part_of(config, ExactSettings) == ExactSettings(
            model="m",
            benchmark="exact",
            answers="a.json",
            closeness=0.5,
            model_ids=("m",),
            region="us-east-1",
        )
        (problem,) = replace(config, closeness=1.5).problems()
        assert problem.render() == "closeness is 1.5, but must lie in 0..1."

    @pytest.mark.parametrize(
        ("flags", "said"),
        [
            (
                {"benchmark": "exact", "pressure": "none"},
                "--pressure is a setting of socratic, not of exact.",
            ),
            (
                {"benchmark": "exact", "student": "scripted"},
                "--student is a setting of socratic, not of exact.",
            ),
            (
                {"answers": "a.json"},
                "--answers is a setting of exact, not of socratic.",
            ),
        ],
    )
    def test_a_flag_of_the_one_that_is_not_played_is_a_mistake(self, flags, said):
        config, problems = read(**flags)

        assert problems == [said]
        assert config.problems() == ()

    def test_a_variable_of_the_one_that_is_not_played_is_not_meant(self):
        environ = {"RUNNER_STUDENT_MODEL": "s", "RUNNER_ANSWERS": "a.json"}

        assert read(environ=environ)[0].answers is None
        config, problems = read(benchmark="exact", environ=environ)
        assert (config.student_model, config.answers, problems) == (None, "a.json", [])

    def test_so_is_a_value_of_the_library_s_user(self):
        (problem,) = BOTH(model="m", region="us-east-1", answers="a.json").problems()

        assert problem.render() == "answers is a setting of exact, not of socratic."

    def test_a_setting_that_two_declare_alike_belongs_to_both(self):
        class Same(CoreConfig, frozen=True, kw_only=True):
            answers: Answers = None

        both: Any = compose("Same", {"exact": ExactSettings, "same": Same})
        for name in ("exact", "same"):
            assert both(model="m", benchmark=name, region="us-east-1", answers="a").problems() == ()

    def test_a_setting_that_two_declare_differently_is_refused(self):
        class Other(CoreConfig, frozen=True, kw_only=True):
            answers: Annotated[int, Setting("dialogue", "N", "how many")] = 1

        with pytest.raises(TypeError, match="answers"):
            compose("Broken", {"exact": ExactSettings, "other": Other})

    def test_a_setting_of_every_run_is_not_declared_anew(self):
        class Other(CoreConfig, frozen=True, kw_only=True):
            turns: Annotated[int, Setting("dialogue", "N", "how many")] = 1

        with pytest.raises(TypeError, match="turns"):
            compose("Broken", {"other": Other})

    @pytest.mark.parametrize(
        ("setting", "said"),
        [
            (Setting("dialogue", "N", "how many", flag="seed"), "--seed"),
            (Setting("dialogue", "N", "how many", short="o"), "-o"),
            (Setting("dialogue", "N", "how many", variables=("AWS_REGION",)), "AWS_REGION"),
        ],
    )
    def test_nor_has_it_the_name_of_another(self, setting, said):
        class Other(CoreConfig, frozen=True, kw_only=True):
            n_cases: Annotated[int, setting] = 1

        with pytest.raises(ValueError, match=f"called {said}\\."):
            listed((compose("Broken", {"other": Other}),))


def test_an_unknown_benchmark_is_said_with_all_other_mistakes():
    outcome = run(*OFFLINE, "--benchmark", "solo", "--turns", "0")

    assert outcome.exit_code == 2
    assert outcome.document["benchmark"] == "solo"
    assert outcome.document["error"]["message"].startswith(
        "--turns is 0, but must lie in 1..500. No benchmark 'solo'; available: "
    )


def test_the_library_calls_settings_by_their_names_and_the_command_by_its_flags():
    config = RunConfig(model="m", prompt="Hi", region="us-east-1", call_timeout_s=0, stream=False)
    (problem,) = config.problems()
    error = UsageError([problem, problem])

    assert error.problems == ("call_timeout_s is 0, but must lie in 0.001..3600.",)
    error.call_settings(flag_names((RunConfig,)))
    assert error.problems == ("--call-timeout is 0, but must lie in 0.001..3600.",)
    assert str(error) == error.message == error.problems[0]


LIBRARY = {"model": "m", "prompt": "Why?", "region": "us-east-1"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"turns": "3"}, "turns is '3', but must be of type int."),
        ({"turns": True}, "turns is True, but must be of type int."),
        ({"turns": None}, "turns is None, but must be of type int."),
        ({"turns": 3.0}, "turns is 3.0, but must be of type int."),
        ({"temperature": "x"}, "temperature is 'x', but must be of type float | None."),
        ({"stream": "no"}, "stream is 'no', but must be of type bool."),
        ({"scenario": 3}, "scenario is 3, but must be of type str | None."),
        ({"output_dir": b"out"}, "output_dir is b'out', but must be of type str | None."),
        ({"model_ids": "END"}, "model_ids is 'END', but must be of type tuple[str, ...] | None."),
        ({"gates": "x"}, "gates is 'x', but must be of type tuple[Gate, ...]."),
        (
            {"gates": ("x",)},
            (
                "gates is ('x',), but must be of type tuple[Gate, ...] ([0]: expected "
                "`object`, got `str`)."
            ),
        ),
        (
            {"gates": (Gate("overall_score", "7"),)},  # type: ignore[arg-type]
            (
                "gates is (Gate(metric='overall_score', bound='7', side='under'),), but must be of "
                "type tuple[Gate, ...] ([0].bound: expected `float`, got `str`)."
            ),
        ),
        (
            {"gates": (Gate("overall_score", float("nan")),)},
            "gates overall_score: the bound is nan, but must be finite.",
        ),
        (
            {"gates": (Gate("half_life", float("inf")),)},
            "gates half_life: the bound is inf, but must be finite.",
        ),
        ({"guardrail": "a:1"}, "guardrail is 'a:1', but must be of type Guardrail | None."),
        (
            {"request_metadata": {"team": "a"}},
            "request_metadata is {'team': 'a'}, but must be of type tuple[tuple[str, str], ...].",
        ),
        ({"pressure": 3}, "pressure is 3, but must be one of none, low, high."),
    ],
)
def test_a_value_of_another_type_is_a_mistake_like_all_others(given, said):
    config: Any = RunConfig(**{**LIBRARY, "max_attempts": 0, **given})
    others = ("max_attempts is 0, but must lie in 1..100.",)

    assert tuple(problem.render() for problem in config.problems()) == (said, *others)
    with pytest.raises(UsageError) as refused:
        play(config)
    assert refused.value.problems == (said, *others)


def test_what_can_be_taken_for_its_type_is_as_if_it_were(tmp_path):
    config: Any = RunConfig(
        **LIBRARY,
        offline=True,
        gates=[{"metric": "overall_score", "bound": 0}],
        request_metadata=[["team", "a"]],
        output_dir=tmp_path,
        call_timeout_s=20,
    )
    plan = prepare(config)

    assert plan.config == replace(
        config,
        seed=plan.seed,
        gates=(Gate("overall_score", 0),),
        request_metadata=(("team", "a"),),
        output_dir=str(tmp_path),
    )


def test_mistakes_in_files_name_settings_too(tmp_path):
    prices, record, other = (tmp_path / name for name in ("prices", "record", "other"))
    prices.write_bytes(b"\xff")
    turns = '"turns": [{"student": "Why?", "tutor": "What do you think?"}]'
    record.write_text(f"{{{turns}}}")
    other.write_text(f'{{"scenario": "mine", {turns}}}')
    own: Any = {"model": "m", "region": "us-east-1", "prices_file": str(prices)}
    asked = RunConfig(**own, transcript=str(record), transcript_turns=2)
    foreign = RunConfig(**own, transcript=str(other))

    told = _mistakes(asked)
    assert told.problems == (
        f"{record}: turns: it has 1, but transcript_turns asks for 2.",
        f"prices_file {prices}: not JSON, since it is not UTF-8 text.",
    )
    told.call_settings(flag_names((RunConfig,)))
    assert [problem.partition(": ")[2] for problem in told.problems] == [
        "turns: it has 1, but --transcript-turns asks for 2.",
        "not JSON, since it is not UTF-8 text.",
    ]
    assert (
        _mistakes(foreign)
        .problems[0]
        .endswith("Give its file with scenario_file, or another student with scenario.")
    )


def _mistakes(config: RunConfig) -> UsageError:
    with pytest.raises(UsageError) as refused:
        prepare(config)
    return refused.value


def test_what_a_user_wrote_is_not_taken_for_a_setting():
    problem = Problem.of("{turns} is {word!r}.", word="{model} {} {0!x}")

    assert problem.render(str.upper) == "TURNS is '{model} {} {0!x}'."
    assert problem.settings == ("turns",)


class StoppingConfig(GenerateConfig, frozen=True, kw_only=True):
    stop_sequences: tuple[str, ...] = ()


def test_a_new_setting_of_calls_changes_no_digest_of_those_without_it():
    def digest(config: GenerateConfig) -> str:
        return request_sha256(Request(messages=(Message.user("Hi \ud800"),), config=config))

    assert digest(StoppingConfig(top_p=0.5)) == digest(GenerateConfig(top_p=0.5))
    assert digest(StoppingConfig(stop_sequences=("x",))) != digest(StoppingConfig())


class TestAxes:
    """Settings that take several values in a sweep."""

    def test_each_is_a_setting_of_a_run_with_a_flag_of_its_own(self):
        axes = {name: one.setting.axis for name, one in table(RunConfig).items()}

        assert {name: axis for name, axis in axes.items() if axis} == {
            "model": "models",
            "prompt": "prompts",
            "region": "regions",
            "temperature": "temperatures",
            "temperature_shift": "temperature-shifts",
            "service_tier": "service-tier",
            "scenario": "scenarios",
            "pressure": "pressure",
            "pred_reasoning": "pred-reasoning",
        }

    def test_a_word_can_stand_for_several_scenarios(self):
        by_family = {name: _expanded(f"family:{name}") for name in FAMILIES}

        assert _expanded("time-management") == ("time-management",)
        assert _expanded("custom") == ("custom",)
        assert all(
            load_builtin(one).family == name for name, ids in by_family.items() for one in ids
        )
        # Each in one family, and that for any prompt of one's own in none.
        together = sorted(one for ids in by_family.values() for one in ids)
        assert together == [*_expanded("all")] == [i for i in builtin_ids() if i != "custom"]

    @pytest.mark.parametrize(
        ("word", "said"),
        [
            ("time-managment", "--scenarios: no scenario is called 'time-managment'; did you mean"),
            (
                "family:puzzle",
                "--scenarios: no family is called 'puzzle'; did you mean puzzlement?",
            ),
            ("family:", "--scenarios: no family is called ''. There is refutation, "),
            ("all ", "--scenarios: no scenario is called 'all '"),
        ],
    )
    def test_a_word_that_stands_for_none_is_a_mistake(self, word, said):
        with pytest.raises(UsageError) as raised:
            _expanded(word)

        raised.value.call_settings(flag_names((RunConfig,)))
        assert str(raised.value).startswith(said)


def _expanded(word: str) -> tuple[str, ...]:
    expand = table(RunConfig)["scenario"].setting.expand
    assert expand is not None
    return tuple(expand(word))
