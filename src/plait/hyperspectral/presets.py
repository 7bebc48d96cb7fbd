"""Parameters that serve most cubes, and any of them by name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from plait.errors import InvalidInput
from plait.hyperspectral.coder_parameters import BlockAdaptive, HybridCoder, SampleAdaptive
from plait.hyperspectral.image_layout import ImageLayout, check_choice
from plait.hyperspectral.parameters import StreamParameters
from plait.hyperspectral.predictor_parameters import Predictor

__all__ = ["CODER_KINDS", "PRESETS", "check_interoperable", "preset_parameters"]

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
#: What `best` has where fewer pixels than so many are predicted from one another, and less is learned.
_BEST_OF_FEW: Final[tuple[tuple[int, dict[str, int]], ...]] = (
    (
        3_000,
        {"prediction_bands": 3, "weight_interval": 64, "weight_final": 4, "rescaling_counter_size": 6},
    ),
    (16_000, {"prediction_bands": 5, "weight_interval": 128, "weight_final": 4}),
)
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
        of its kind, one of `CODER_KINDS`.

    Returns
    -------
    StreamParameters
        Checked.

    Raises
    ------
    InvalidInput
        If a name is unknown, or a value is out of its range or does not go with another.
    """
    check_choice("preset", preset, tuple(PRESETS))
    kind = named.pop("coder", "sample-adaptive")
    check_choice("coder", kind, tuple(CODER_KINDS))
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
    own: dict[str, Any] = {**usual, **named}
    if image.columns == 1:
        own = {"mode": "reduced", "local_sum": "wide-column", **own}
    if kind == "sample-adaptive" and "accumulator_table" not in named:
        own.setdefault("accumulator_constant", min(5, image.dynamic_range - 2))
    elif kind == "sample-adaptive":
        own.setdefault("accumulator_constant", None)
    if own.get("order", "bi") == "bi":
        own.setdefault("interleaving_depth", image.bands)
    parts = {name: _taken(own, name_of) for name, name_of in _names(CODER_KINDS[kind]).items()}
    if own:
        known = sorted({"coder"}.union(*_names(CODER_KINDS[kind]).values()))
        raise InvalidInput("parameters", found=", ".join(sorted(own)), expected=f"some of {', '.join(known)}")
    return StreamParameters(
        image=image,
        predictor=Predictor(**parts["predictor"]),
        coder=CODER_KINDS[kind](**parts["coder"]),
        **parts["stream"],
    )


def check_interoperable(parameters: StreamParameters) -> None:
    """Check that a stream is one which all programs read alike.

    Parameters
    ----------
    parameters
        What its header will say.

    Raises
    ------
    InvalidInput
        If the reference interval of the block-adaptive coder is no multiple of 64, where programs differ in
        what a run of zero blocks is; or restricted code options are asked for deeper samples than have them.
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


def _names(kind: type) -> dict[str, tuple[str, ...]]:
    return {
        "predictor": tuple(field.name for field in fields(Predictor)),
        "coder": tuple(field.name for field in fields(kind)),
        "stream": _STREAM,
    }


def _taken(named: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: named.pop(name) for name in names if name in named}
