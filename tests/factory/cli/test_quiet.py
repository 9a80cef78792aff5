"""Libraries say errors alone, unless the log is asked for more or their own variable is set."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from .command import ROOT, environment

TORCH = """
import os, sys, logging
sys.argv = ["factory", "--help"]
from factory.cli.main import main
try: main()
except SystemExit: pass
import torch
logging.getLogger("torch.utils.cpp_extension").warning("no such accelerator")
logging.getLogger("torch.utils.cpp_extension").error("a real fault")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("level", "warned"), [("WARNING", False), ("INFO", True)])
def test_warnings_of_torch_are_told_when_asked_for(level: str, warned: bool) -> None:
    variables = environment(FACTORY_LOG=level)
    variables.pop("TORCH_LOGS", None)
    done = subprocess.run(
        [sys.executable, "-c", TORCH], cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120, check=True
    )
    assert ("no such accelerator" in done.stderr) is warned
    assert "a real fault" in done.stderr


def test_a_variable_that_a_user_set_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    from factory.cli.quiet import VARIABLES, quiet

    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "DEBUG")
    quiet(10)
    assert not (VARIABLES.keys() - {"VLLM_LOGGING_LEVEL"}) & os.environ.keys()
    quiet(30)
    found = {name: os.environ[name] for name in VARIABLES}
    for name in VARIABLES:
        if name != "VLLM_LOGGING_LEVEL":
            del os.environ[name]
    assert found == {**VARIABLES, "VLLM_LOGGING_LEVEL": "DEBUG"}
