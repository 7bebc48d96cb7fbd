"""Parameters by preset and by name, whichever part of the header they belong to, and the same as JSON."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any, Final

from plait.errors import FormatError, InvalidInput, one_of, whole
from plait.formats.files import read_json
from plait.hyperspectral.parameters import (
    BlockAdaptive,
    ErrorLimits,
    HybridCoder,
    ImageLayout,
    Predictor,
    Representatives,
    SampleAdaptive,
    StreamParameters,
    SupplementaryTable,
    WeightOffsets,
)

#: Kinds of entropy coders by name.
CODER_KINDS: Final[dict[str, type]] = {
    "sample-adaptive": SampleAdaptive,
    "block-adaptive": BlockAdaptive,
    "hybrid": HybridCoder,
}
#: What each preset has that differs from the usual; benchmarks/hsi.py measures them.
PRESETS: Final[dict[str, dict[str, Any]]] = {
    "fast": {"prediction_bands": 1},
    "default": {"prediction_bands": 3},
    "best": {
        "prediction_bands": 10,
        "weight_resolution": 19,
        "weight_interval": 256,
        "weight_final": 5,
        "rescaling_counter_size": 5,
    },
}
#: The preset that looks at the cube, see `plait.hyperspectral.choosing`.
AUTO: Final = "auto"
#: What `best` has where fewer pixels than so many are predicted from one another, and less is learned.
_BEST_OF_FEW: Final[tuple[tuple[int, dict[str, int]], ...]] = (
    (
        3_000,
        {"prediction_bands": 3, "weight_interval": 64, "weight_final": 4, "rescaling_counter_size": 6},
    ),
    (16_000, {"prediction_bands": 5, "weight_interval": 128, "weight_final": 4}),
)
#: Of near-lossless streams, where none are named: benchmarks/near_lossless.py measures them.
_NEAR_LOSSLESS: Final = Representatives(resolution=3, damping=1, offset=6)
_STREAM = ("order", "interleaving_depth", "output_word_size", "user_field", "supplementary")


def preset_parameters(
    image: ImageLayout, preset: str = "default", pixels: int | None = None, /, **named: Any
) -> StreamParameters:
    """Parameters of a preset, with some of one's own.

    All presets write standard streams of 123.0-B-1 where the depth is at most 16 bits: full prediction,
    neighbour-oriented sums, the sample-adaptive coder and the band-interleaved-by-pixel order. They differ in
    the number of bands that a band is predicted from, and so in time.

    Parameters
    ----------
    image
        Size and sample type.
    preset
        ``"fast"``, ``"default"`` or ``"best"``.
    pixels
        Pixels that are predicted from one another, those of a block; None for all of the image.
    **named
        Any field of `Predictor`, of the coder and of `StreamParameters`, by its name; ``coder`` is the name
        of its kind, one of `CODER_KINDS`. ``max_error`` and ``relative_error`` in place of ``error_limits``
        make a near-lossless stream, with sample representatives: see `limits_of`.

    Returns
    -------
    StreamParameters
        Checked.

    Raises
    ------
    InvalidInput
        If a name is unknown, or a value is out of its range or does not go with another.
    """
    if preset == AUTO:
        expected = "a cube to look at: give the preset to compress_cube or compress_file"
        raise InvalidInput("preset", found=repr(preset), expected=expected)
    one_of("preset", preset, (*PRESETS, AUTO))
    kind = named.pop("coder", "sample-adaptive")
    one_of("coder", kind, tuple(CODER_KINDS))
    usual = dict(PRESETS[preset])
    if preset == "best":
        pixels = image.rows * image.columns if pixels is None else pixels
        usual |= next((few for most, few in _BEST_OF_FEW if pixels < most), {})
    if kind == "block-adaptive":
        usual.pop("rescaling_counter_size", None)
    exponent = named.get("initial_count_exponent", 1)
    if kind != "block-adaptive" and isinstance(exponent, int) and exponent >= 5:
        # The counter has to be larger than it begins.
        usual["rescaling_counter_size"] = max(6, exponent + 1)
    own: dict[str, Any] = {**usual, **_with_limits(image, named)}
    if image.columns == 1:
        own = {"mode": "reduced", "local_sum": "wide-column", **own}
    if kind == "sample-adaptive" and "accumulator_table" not in named:
        own.setdefault("accumulator_constant", min(5, image.dynamic_range - 2))
    elif kind == "sample-adaptive":
        own.setdefault("accumulator_constant", None)
    if own.get("order", "bi") == "bi":
        own.setdefault("interleaving_depth", image.bands)
    predictor, coder = ([field.name for field in fields(part)] for part in (Predictor, CODER_KINDS[kind]))
    known = sorted({"coder", "max_error", "relative_error", *predictor, *coder, *_STREAM})
    parts = [{name: own.pop(name) for name in names if name in own} for names in (predictor, coder, _STREAM)]
    if own:
        raise InvalidInput(
            "parameters",
            found=", ".join(name[:40] or repr(name) for name in sorted(own)[:6]),
            expected=f"some of {', '.join(known)}",
        )
    made = {"predictor": Predictor(**parts[0]), "coder": CODER_KINDS[kind](**parts[1])}
    return StreamParameters(image=image, **made, **parts[2])


def limits_of(image: ImageLayout, max_error: Any = None, relative_error: Any = None) -> ErrorLimits | None:
    """Error limits of a near-lossless stream.

    Parameters
    ----------
    image
        Size and sample type.
    max_error
        Largest error of a sample, a whole number, or one for each band.
    relative_error
        Largest error as a share of what was predicted for the sample, such as 0.01, or one for each band; it
        is rounded down to whole 2**-D.

    Returns
    -------
    ErrorLimits or None
        None if there are neither.

    Raises
    ------
    InvalidInput
        If a number is out of the range that 16 bits leave.
    """
    if max_error is None and relative_error is None:
        return None
    depth, relative = image.dynamic_range, None
    if relative_error is not None:
        shares = [_share(one, depth) for one in _listed(relative_error)]
        relative = tuple(shares) if isinstance(relative_error, list | tuple) else shares[0]
    absolute = tuple(max_error) if isinstance(max_error, list) else max_error
    for one in _listed(() if absolute is None else absolute):
        whole("max_error", one, 0, (1 << min(depth - 1, 16)) - 1, f" for samples of {depth} bits")
    return ErrorLimits(absolute=absolute, relative=relative)


def _listed(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, list | tuple) else (values,)


def _share(share: Any, depth: int) -> int:
    """A share in whole 2**-D."""
    most = (1 << min(depth - 1, 16)) - 1
    number = isinstance(share, int | float) and not isinstance(share, bool)
    steps = math.floor(share * (1 << depth)) if number and 0 <= share < 1 else -1
    if not 0 <= steps <= most or (share and not steps):
        least, largest = 1 / (1 << depth), most / (1 << depth)
        expected = f"0, or a share from {least:.2g} to {largest:.6g} for samples of {depth} bits"
        raise InvalidInput("relative_error", found=repr(share), expected=expected)
    return steps


def _with_limits(image: ImageLayout, named: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by name, with error limits in place of what stands for them, and what goes with them."""
    found = dict(named)
    limits = limits_of(image, found.pop("max_error", None), found.pop("relative_error", None))
    if limits is not None and found.get("error_limits") is not None:
        expected = "either them, or max_error and relative_error"
        raise InvalidInput("error_limits", found="both", expected=expected)
    if limits is None:
        return found
    return {"representatives": _NEAR_LOSSLESS, **found, "error_limits": limits}


def check_interoperable(parameters: StreamParameters) -> None:
    """InvalidInput if programs would differ in how they read a stream with these parameters.

    They do where the reference interval of the block-adaptive coder is no multiple of 64 (what a run of zero
    blocks is), and for restricted code options with samples of more than 4 bits.
    """
    coder, depth = parameters.coder, parameters.image.dynamic_range
    if not isinstance(coder, BlockAdaptive):
        return
    if coder.reference_interval % 64:
        raise InvalidInput(
            "reference_interval",
            found=str(coder.reference_interval),
            expected="a multiple of 64 up to 4096: programs differ in how they read others",
            hint="--any-reference-interval writes it all the same",
        )
    if coder.restricted and depth > 4:
        found = f"restricted code options for samples of {depth} bits"
        raise InvalidInput("restricted", found=found, expected="them for up to 4 bits", hint="leave it out")


#: Parameters that are made of several numbers.
_PARTS: Final[dict[str, type]] = {
    "weight_offsets": WeightOffsets,
    "representatives": Representatives,
    "error_limits": ErrorLimits,
}
#: No file of parameters is larger.
_MOST_BYTES: Final = 1 << 28
#: Tables that a stream may use and not carry, by the name that `parse_header` has for them.
_TABLES: Final = ("weight_table", "weight_offsets", "accumulator_table", "initial_sums")


def named_parameters(parameters: StreamParameters) -> dict[str, Any]:
    """All parameters but those of the image by name, ready for JSON; what is None is left out."""
    coder = parameters.coder
    found: dict[str, Any] = {
        "coder": next(name for name, kind in CODER_KINDS.items() if type(coder) is kind),
        **asdict(parameters.predictor),
        **asdict(coder),
    }
    for name in ("order", "interleaving_depth", "output_word_size", "user_field"):
        found[name] = getattr(parameters, name)
    if parameters.order != "bi":
        del found["interleaving_depth"]
    # Whether the header carries a table says nothing where there is none.
    for table, carried in (
        ("weight_table", "weight_table_in_header"),
        ("accumulator_table", "table_in_header"),
    ):
        if found.get(table) is None:
            found.pop(carried, None)
    if parameters.supplementary:
        found["supplementary"] = [asdict(table) for table in parameters.supplementary]
    return {name: value for name, value in found.items() if value is not None}


def read_parameters(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Parameters by name, as presets take them, from a JSON file like that of ``plait hsi info --json``.

    The file holds the object itself, or one that has it as ``parameters``. FormatError if it is no such file,
    or a name is unknown.
    """
    found = read_json(path, "a JSON file with parameters by name", most=_MOST_BYTES)
    if isinstance(found, dict) and isinstance(found.get("parameters"), dict):
        found = found["parameters"]
    if not isinstance(found, dict):
        raise FormatError(path, found=type(found).__name__, expected="an object with parameters by name")
    try:
        return typed(found)
    except InvalidInput as error:
        expected = "parameters by name, as plait hsi info --json prints them"
        raise FormatError(path, found=error, expected=expected) from error


def typed(found: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON has them, with lists as tuples and parts as their own types.

    InvalidInput if a part has other names than it should have, or lists are nested too deeply.
    """
    try:
        plain = {name: _tuples(value) for name, value in found.items()}
    except RecursionError as error:
        expected = "numbers, and lists of them"
        raise InvalidInput("parameters", found="lists nested too deeply", expected=expected) from error
    for name, kind in _PARTS.items():
        if plain.get(name) is not None:
            plain[name] = _made(name, kind, plain[name])
    if "supplementary" in plain:
        tables = plain["supplementary"]
        if not isinstance(tables, tuple):
            raise InvalidInput("supplementary", found=reprlib.repr(tables), expected="a list of tables")
        plain["supplementary"] = tuple(_made("supplementary", SupplementaryTable, one) for one in tables)
    return plain


def _made(name: str, kind: type, found: Any) -> Any:
    if not isinstance(found, Mapping):
        if isinstance(found, kind):
            return found
        raise InvalidInput(name, found=reprlib.repr(found), expected="an object with parameters by name")
    names = {field.name for field in fields(kind)}
    needed = {field.name for field in fields(kind) if field.default is MISSING}
    left, missing = sorted(set(found) - names), sorted(needed - set(found))
    if left or missing:
        told = ", ".join(left) if left else f"no {', '.join(missing)}"
        raise InvalidInput(name, found=told, expected=", ".join(sorted(names)))
    return kind(**found)


def _tuples(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_tuples(one) for one in value)
    return {key: _tuples(one) for key, one in value.items()} if isinstance(value, Mapping) else value


def tables_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """Tables that a stream may use and not carry, out of parameters by name; for decompression."""
    tables = {name: found[name] for name in _TABLES if found.get(name) is not None}
    representatives = found.get("representatives")
    if isinstance(representatives, Representatives):
        parts = {"damping": representatives.damping, "offset": representatives.offset}
        tables |= {name: values for name, values in parts.items() if not isinstance(values, int)}
    return tables


def outside_tables(parameters: StreamParameters) -> dict[str, Any]:
    """Tables that a stream may use and not carry, out of the parameters it was made with."""
    parts, names = (parameters.predictor, parameters.coder), (*_TABLES, "representatives")
    return tables_of({name: getattr(part, name) for part in parts for name in names if hasattr(part, name)})
