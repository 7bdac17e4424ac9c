"""Tells Hatchling for which Python and platform a wheel is. tools/make_wheel.py sets the tag, and puts this file beside the pyproject.toml."""

import os
import pathlib

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data.update(pure_python=False, tag=os.environ["WHEEL_TAG"])
        # Hatchling leaves `*.pyd` out of every wheel, with compiled files of Python.
        for module in pathlib.Path(self.root).glob("*/_native.pyd"):
            build_data["force_include"][str(module)] = module.relative_to(self.root).as_posix()
