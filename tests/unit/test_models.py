"""Parameters of path-counting models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.oracles import end_ways

from plait.errors import InvalidInput
from plait.vdj.models import PathModel, end_weight

pytestmark = pytest.mark.interpreted(alone=True)


@pytest.mark.parametrize("strands", [1, 2])
@pytest.mark.parametrize("pi", [0, 1, 4, 16])
def test_weights_of_an_end(strands: int, pi: int) -> None:
    for delta in range(-30, pi + 4):
        assert end_weight(delta, pi, strands) == end_ways(delta, pi, strands)


def test_the_defaults_are_the_published_ones() -> None:
    model = PathModel()
    assert (model.name, model.strands, model.pi, model.nu, model.max_n) == ("dp2", 1, 4, 10, 10)
    assert (model.empty_d, model.is_sweep) == ("positions", False)
    assert model.limits == ((10, 10, 10),)


@pytest.mark.parametrize(
    ("parameters", "what"),
    [
        ({"name": "dp3"}, "model"),
        ({"name": "DP2"}, "model"),
        ({"strands": 0}, "strands"),
        ({"strands": 3}, "strands"),
        ({"pi": -1}, "pi"),
        ({"pi": 17}, "pi"),
        ({"pi": 4.0}, "pi"),
        ({"pi": True}, "pi"),
        ({"pi": None}, "pi"),
        ({"pi": "4"}, "pi"),
        ({"nu": -1}, "nu"),
        ({"nu": 201}, "nu"),
        ({"nu_vd": -1}, "nu_vd"),
        ({"nu_dj": 201}, "nu_dj"),
        ({"nu_dj": 1.5}, "nu_dj"),
        ({"sweep_pi": (0, -1)}, "sweep_pi"),
        ({"sweep_pi": (2, 1)}, "sweep_pi"),
        ({"sweep_pi": (1, 1)}, "sweep_pi"),
        ({"sweep_nu": (0, 201)}, "sweep_nu"),
        ({"name": "dp1", "max_n": -1}, "max_n"),
        ({"name": "dp1", "max_n": 201}, "max_n"),
        ({"name": "exhaustive", "max_n": 11}, "max_n"),
        ({"name": "dp1", "empty_d": "twice"}, "empty_d"),
        ({"name": "dp1", "sweep_pi": (0, 1)}, "sweep_pi"),
        ({"name": "exhaustive", "max_n": 2, "sweep_nu": (0,)}, "sweep_nu"),
        ({"name": "dp1", "nu_dj": 3}, "nu_dj"),
        ({"name": "dp1", "strands": 2}, "strands"),
        ({"sweep_nu": (0, 1), "nu_vd": 1, "nu_dj": 2}, "sweep_nu"),
        ({"sweep_nu": 3}, "sweep_nu"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        PathModel(**parameters)
    error = caught.value
    assert error.what == what
    assert error.expected
    assert str(error).startswith(f"{what}: found ")


@pytest.mark.parametrize(
    "parameters",
    [
        {"pi": 0, "nu": 0},
        {"pi": 16, "nu": 200},
        {"name": "dp1", "max_n": 0},
        {"name": "dp1", "max_n": 200},
        {"name": "exhaustive", "max_n": 10},
        {"nu_vd": 0, "nu_dj": 200},
    ],
)
def test_limits_are_within_reach(parameters: dict[str, Any]) -> None:
    assert PathModel(**parameters)


def test_a_sweep_has_its_own_values_and_the_single_ones() -> None:
    model = PathModel(pi=3, nu=7, sweep_pi=(0, 2, 4), sweep_nu=(1, 7))
    assert model.is_sweep
    assert model.axes == ((0, 2, 4), (1, 7))
    assert model.pis == (0, 2, 3, 4)
    assert model.nus == (1, 7)


def test_a_sweep_over_one_parameter_keeps_the_other() -> None:
    over_pi, over_nu = PathModel(pi=1, nu=2, sweep_pi=(0, 4)), PathModel(pi=1, nu=2, sweep_nu=(0, 4))
    assert over_pi.is_sweep
    assert over_pi.axes == ((0, 4), (2,))
    assert over_nu.axes == ((1,), (0, 4))


def test_limits_of_the_junctions() -> None:
    assert PathModel(nu=5, nu_vd=2).limits == ((2, 5, 5),)
    assert PathModel(nu=5, nu_dj=7).limits == ((5, 7, 7),)
    assert PathModel(nu=5, nu_vd=3, nu_dj=1).limits == ((3, 1, 3),)
    assert PathModel(nu=1, sweep_nu=(0, 4), nu_dj=2).limits == ((0, 2, 2), (1, 2, 2), (4, 2, 4))


def test_parameters_as_a_dictionary() -> None:
    dp2 = PathModel(strands=2, pi=3, nu=4, sweep_nu=(0, 4)).as_dict()
    assert dp2["model"] == "dp2"
    assert (dp2["strands"], dp2["pi"], dp2["nu"], dp2["sweep_nu"]) == (2, 3, 4, [0, 4])
    dp1 = PathModel(name="dp1", pi=3, max_n=5, empty_d="once").as_dict()
    assert dp1 == {"model": "dp1", "pi": 3, "max_n": 5, "empty_d": "once"}


def test_a_model_is_a_value() -> None:
    assert PathModel(nu=3) == PathModel(nu=3)
    assert len({PathModel(nu=3), PathModel(nu=3), PathModel(nu=4)}) == 2
    with pytest.raises(AttributeError):
        PathModel().pi = 2  # type: ignore[misc]


def test_whole_numbers_of_numpy_are_taken() -> None:
    model = PathModel(pi=np.int64(3), sweep_nu=np.arange(3))  # type: ignore[arg-type]
    assert model == PathModel(pi=3, sweep_nu=(0, 1, 2))
    assert type(model.pi) is int
