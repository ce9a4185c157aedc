"""Where two collections of golden values differ."""

import math
import re

NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
IN_TEXTS = 0.02  # relative: numbers in texts are rounded, perhaps from two sides of a half


def differences(one, other, tolerance, path=""):
    """All places where the values differ, as (path, one, other); beside a tolerance of 0 to the last bit."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = [*one, *(name for name in other if name not in one)]
        parts = (differences(one.get(n, "(none)"), other.get(n, "(none)"), tolerance, f"{path}/{n}") for n in names)
        return [found for part in parts for found in part]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        parts = (differences(*pair, tolerance, f"{path}/{k}") for k, pair in enumerate(zip(one, other, strict=True)))
        return [found for part in parts for found in part]
    return [] if _same(one, other, tolerance) else [(path, one, other)]


def _same(one, other, tolerance):
    if isinstance(one, str) and isinstance(other, str) and tolerance:
        words, numbers = zip(*((NUMBER.split(text), NUMBER.findall(text)) for text in (one, other)), strict=True)
        near = (math.isclose(float(a), float(b), rel_tol=IN_TEXTS) for a, b in zip(*numbers, strict=False))
        return words[0] == words[1] and all(near)
    if type(one) in (int, float) and type(other) in (int, float):
        both_nan = math.isnan(one) and math.isnan(other)
        return both_nan or one == other or math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance * 1e-3)
    return type(one) is type(other) and one == other
