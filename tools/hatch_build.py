"""Tells Hatchling for which Python and platform a wheel is. tools/make_wheel.py sets the tag, and puts this file beside the pyproject.toml."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data.update(pure_python=False, tag=os.environ["WHEEL_TAG"])
