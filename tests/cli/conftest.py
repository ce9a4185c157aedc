"""No test of the command line leaves anything in the cache of the user."""

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    folder = str(tmp_path_factory.mktemp("cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", folder)
    monkeypatch.setenv("LOCALAPPDATA", folder)
