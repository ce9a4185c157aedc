"""Properties that are computed once for each object, without a lock."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:  # noqa: N801
        """That of Python 3.12 and newer.

        Before, functools had one lock for all objects of a class: a process that was forked while another thread
        computed such a property waited for ever for it, and threads waited for each other.
        """

        def __init__(self, function):
            self.function, self.name, self.__doc__ = function, None, function.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            """The value, which from now on is found in the object itself."""
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.function(instance)
            return value


__all__ = ["cached_property"]
