"""What the configurations say is what was stored, up to the last bits of another processor.

Where it changes on purpose: ``python tests/golden make tests/golden/values.json``, and say in the commit why.
"""

import json
from pathlib import Path

import configurations
import pytest
from compare import differences

VALUES = json.loads(Path(__file__).with_name("values.json").read_text(encoding="utf-8"))
TOLERANCE = 1e-6


def test_every_configuration_is_stored():
    assert list(VALUES) == list(configurations.CONFIGURATIONS)


@pytest.mark.parametrize("name", VALUES)
def test_says_what_was_stored(name):
    said = json.loads(json.dumps(configurations.plain(configurations.run(name))))
    assert differences(VALUES[name], said, TOLERANCE) == []


def test_differences_are_found():
    value = VALUES["default"]
    assert differences(value, json.loads(json.dumps(value)), 0.0) == []
    near = json.loads(json.dumps(value))
    near["predict"][0] *= 1 + 1e-12
    assert differences(value, near, TOLERANCE) == []
    assert [path for path, *_ in differences(value, near, 0.0)] == ["/predict/0"]
    near["predict"][0] *= 1 + 1e-5
    near["summary"][0] = near["summary"][0].replace("learnt", "made")
    assert [path for path, *_ in differences(value, near, TOLERANCE)] == ["/predict/0", "/summary/0"]
    assert differences({"a": [1.0]}, {"a": [1.0, 2.0]}, TOLERANCE) != []
    assert differences({"a": 1.0}, {}, TOLERANCE) != []
