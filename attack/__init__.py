"""Attempts to break sosbands: seeded, bounded, resumable.

    python -m attack [--part NAME] [--quick] [--jobs 2]

Every part is a module with three names: FULL and QUICK, the numbers of attempts of `make attack` and of `make test`,
and ``attempt(number)``, which says in a word or two what happened and raises AssertionError where something broke.
What attempts share may be made by a fourth, ``prepare(number)``, before the process of an attempt begins.
"""
