"""Puts machine code into a wheel that tools/build_wheel.py builds; any other wheel is pure."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Objects(BuildHookInterface[Any]):
    """Adds the folders of ``PLAIT_WHEEL_OBJECTS``, for the platform that ``PLAIT_WHEEL_PLATFORM`` names."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them before the wheel is built."""
        folders = os.environ.get("PLAIT_WHEEL_OBJECTS", "")
        if not folders or version != "standard":
            return
        for folder in map(Path, folders.split(os.pathsep)):
            build_data["force_include"][str(folder)] = f"plait/lang/objects/{folder.name}"
        build_data["pure_python"] = False
        # Digests of sources can differ between versions of Python.
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        build_data["tag"] = f"{python}-none-{os.environ['PLAIT_WHEEL_PLATFORM']}"
