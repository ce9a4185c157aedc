"""Flat settings as the constructor of SoSBandRegressor wants them, for tests that vary many of them."""

from dataclasses import fields

from sosbands.bands import BandSettings
from sosbands.tuning import Rules

NUMERICS = {field.name for field in fields(BandSettings)} - {
    "lengthscale",
    "width_penalty",
    "learning_coverage",
    "symmetry_penalty",
}
TESTS = {"criterion": "criterion", "symmetry_test": "symmetry_test", "test_level": "level"}


def spelled(**settings):
    """Numerics in ``bands=``, criterion and tests in ``rules=``, everything else as it is."""
    numerics = {name: settings.pop(name) for name in list(settings) if name in NUMERICS}
    tests = {TESTS[name]: settings.pop(name) for name in list(settings) if name in TESTS}
    found = {"bands": BandSettings(**numerics)} if numerics else {}
    return settings | found | ({"rules": Rules(**tests)} if tests else {})
