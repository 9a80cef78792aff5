"""The contracts are pure: importing them pulls in the standard library and nothing else."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys

import factory.core

CODE = """
import importlib, json, sys
before = set(sys.modules)
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))
"""


def test_importing_the_contracts_is_light() -> None:
    modules = [f"factory.core.{module.name}" for module in pkgutil.iter_modules(factory.core.__path__)]
    assert {"factory.core.task", "factory.core.errors", "factory.core.trajectory"} <= set(modules)
    found = subprocess.run([sys.executable, "-c", CODE, json.dumps(modules)], capture_output=True, check=True)
    loaded = set(json.loads(found.stdout))
    assert loaded - set(sys.stdlib_module_names) == {"factory"}
    assert not loaded & {"torch", "vllm", "prefect", "typer", "docker", "numpy"}
