"""Path-counting models: their parameters, and the weight of every gene end under them.

Source: the path-counting models *exhaustive*, *DP-1* (counts by the total number of N nucleotides) and
*DP-2* (D-J joins before V-D; extension and erosion; a sweep of limits). A gene end is extended by up to
`pi` palindromic (P) nucleotides and then eroded; each junction takes up to `nu` random (N) nucleotides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from plait.errors import InvalidInput, one_of, whole, whole_fields

ModelName = Literal["dp2", "dp1", "exhaustive"]
EmptyD = Literal["positions", "once", "none"]

#: Longest palindromic extension that can be asked for; real ones hardly exceed 4.
_MAX_PI = 16
#: Most N nucleotides at one junction (or, for dp1, at all together) that can be asked for.
_MAX_NU = 200
#: Most N nucleotides that `exhaustive` enumerates: 4^n strings are built for every text.
_MAX_EXHAUSTIVE = 10


#: Most N nucleotides at a junction that commands take where nothing is said: 99 % of the insertions in human
#: IGH have no more, and in the other loci 85 % and more no more than 10 (models of the package righor).
USUAL_NU = {"IGH": 40}


def end_weight(delta: int, pi: int, strands: int) -> int:
    """Ways to reach a gene end that is `delta` nucleotides longer than its germline (DP-2).

    Every extension of up to `pi` nucleotides can be followed by an erosion. With two strands a cut on
    either strand is another way, while no extension is one way.

    >>> [end_weight(d, 4, 1) for d in (-1, 0, 1, 2, 4, 5)]
    [5, 5, 4, 3, 1, 0]
    >>> [end_weight(d, 4, 2) for d in (-1, 0, 1, 2, 4, 5)]
    [9, 9, 8, 6, 2, 0]
    """
    if strands == 1:
        return max(0, min(pi + 1 - delta, pi + 1))
    return max(0, min(2 * (pi + 1 - delta), 2 * pi + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class PathModel:
    """A path-counting model, or a sweep of them.

    Attributes
    ----------
    name
        ``"dp2"``, ``"dp1"`` or ``"exhaustive"``.
    strands
        1 or 2 (dp2 only).
    pi
        Longest palindromic extension of a gene end.
    nu
        Most N nucleotides at a junction (dp2 only).
    nu_vd, nu_dj
        Limits of one junction that replace `nu` there. Where only one insertion exists (V-J joins, and
        between two D genes), the larger of the two limits holds.
    sweep_pi, sweep_nu
        Values of `pi` and `nu` to count with besides (dp2 only); every combination is a model. If only one
        of them is given, the other one keeps its single value.
    max_n
        dp1 and exhaustive: largest total number of N nucleotides; by default 10, and 4 for exhaustive.
    empty_d
        dp1 and exhaustive: in how many ways a D gene can vanish: once per position of the extended D,
        ``"once"``, or ``"none"``.

    Raises
    ------
    InvalidInput
        If a parameter is out of range.
    """

    name: ModelName = "dp2"
    strands: int = 1
    pi: int = 4
    nu: int = 10
    nu_vd: int | None = None
    nu_dj: int | None = None
    sweep_pi: tuple[int, ...] = ()
    sweep_nu: tuple[int, ...] = ()
    max_n: int = None  # type: ignore[assignment]  # set below, by model
    empty_d: EmptyD = "positions"

    def __post_init__(self) -> None:
        """Check every parameter."""
        if self.max_n is None:
            object.__setattr__(self, "max_n", 4 if self.name == "exhaustive" else 10)
        one_of("model", self.name, ("dp2", "dp1", "exhaustive"))
        one_of("empty_d", self.empty_d, ("positions", "once", "none"))
        whole_fields(self, "strands", least=1, most=2)
        whole_fields(self, "pi", most=_MAX_PI)
        whole_fields(self, "nu", "nu_vd", "nu_dj", most=_MAX_NU)
        whole_fields(self, "max_n", most=_MAX_EXHAUSTIVE if self.name == "exhaustive" else _MAX_NU)
        for what, most in (("sweep_pi", _MAX_PI), ("sweep_nu", _MAX_NU)):
            object.__setattr__(self, what, _swept(what, getattr(self, what), most))
        self._check_together()

    def _check_together(self) -> None:
        """Parameters that would have no effect are errors, not ignored."""
        if self.name != "dp2":
            for what in ("sweep_pi", "sweep_nu", "nu_vd", "nu_dj"):
                if getattr(self, what) not in (None, ()):
                    raise InvalidInput(what, found=f"a value with model {self.name}", expected="model dp2")
            if self.strands != 1:
                raise InvalidInput("strands", found=f"{self.strands} with model {self.name}", expected="1")
        elif self.sweep_nu and self.nu_vd is not None and self.nu_dj is not None:
            raise InvalidInput(
                "sweep_nu", found="a sweep beside nu_vd and nu_dj", expected="at most one of these two"
            )

    @property
    def at_default_limits(self) -> PathModel | None:
        """The same with the default limits where its own are tighter, without a sweep; None if none is."""
        one, usual = replace(self, sweep_pi=(), sweep_nu=()), PathModel()
        wider = {name: max(getattr(one, name) or 0, getattr(usual, name)) for name in ("pi", "nu", "max_n")}
        if one.name == "exhaustive":
            wider["max_n"] = one.max_n
        both = {
            name: max(limit, usual.nu)
            for name in ("nu_vd", "nu_dj")
            if (limit := getattr(one, name)) is not None
        }
        found = replace(one, **wider, **both)
        return None if found == one else found

    @property
    def is_sweep(self) -> bool:
        """Whether a sweep is asked for."""
        return bool(self.sweep_pi or self.sweep_nu)

    @property
    def axes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The values of pi and of nu in the sweep."""
        return self.sweep_pi or (self.pi,), self.sweep_nu or (self.nu,)

    @property
    def pis(self) -> tuple[int, ...]:
        """All values of pi to count with: the sweep's and the single one."""
        return tuple(sorted({self.pi, *self.sweep_pi}))

    @property
    def nus(self) -> tuple[int, ...]:
        """All values of nu to count with: the sweep's and the single one."""
        return tuple(sorted({self.nu, *self.sweep_nu}))

    @property
    def limits(self) -> tuple[tuple[int, int, int], ...]:
        """For each of `nus`: the limits (V-D, D-J, single insertion)."""
        found = []
        for nu in self.nus:
            vd = nu if self.nu_vd is None else self.nu_vd
            dj = nu if self.nu_dj is None else self.nu_dj
            found.append((vd, dj, max(vd, dj)))
        return tuple(found)

    def as_dict(self) -> dict[str, Any]:
        """The parameters that matter for this model, ready for JSON."""
        shared: dict[str, Any] = {"model": self.name, "pi": self.pi}
        if self.name != "dp2":
            return {**shared, "max_n": self.max_n, "empty_d": self.empty_d}
        limits = {"nu": self.nu, "nu_vd": self.nu_vd, "nu_dj": self.nu_dj}
        sweep = {"sweep_pi": list(self.sweep_pi), "sweep_nu": list(self.sweep_nu)}
        return {**shared, "strands": self.strands, **limits, **sweep}


def _swept(what: str, values: Any, most: int) -> tuple[int, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(what, found=repr(values), expected="several whole numbers")
    found = tuple(whole(what, value, 0, most) for value in values)
    if list(found) != sorted(set(found)):
        raise InvalidInput(what, found=repr(found), expected="increasing values without repetition")
    return found


def model_of(model: PathModel | ModelName, parameters: Mapping[str, Any]) -> PathModel:
    """A model from itself, or from its name and parameters, which are fields of `PathModel`."""
    names = ", ".join(sorted(parameters))
    if isinstance(model, PathModel):
        if parameters:
            raise InvalidInput(names, found="values beside a PathModel", expected="fields of the PathModel")
        return model
    known = {field.name for field in fields(PathModel)} - {"name"}
    if not known.issuperset(parameters):
        raise InvalidInput(names, found="an unknown parameter", expected="one of " + ", ".join(sorted(known)))
    return PathModel(name=model, **parameters)
