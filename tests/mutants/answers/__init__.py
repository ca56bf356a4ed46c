"""Every answer that the checks are tried with: (exercise, answer), for mutants with what must be said.

A module here belongs to the module of labkit.checks that declares the exercises.
"""

from tests.mutants.answers import layout, number, wave

_MODULES = (wave, layout, number)
RIGHT = [row for module in _MODULES for row in module.RIGHT]
WRONG = [row for module in _MODULES for row in module.WRONG]
MISSED = [row for module in _MODULES for row in module.MISSED]
