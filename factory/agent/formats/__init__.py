"""Action formats by name: how a policy's tokens become actions."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path

from factory.agent.contract import ActionFormat
from factory.core.errors import UserError

POLICY_FILE = "policy.json"
"""In a policy's folder: an object with the name of its format under `format`."""

FORMATS: Mapping[str, str] = {
    "tiny": "factory.agent.formats.tiny:TinyFormat",
    "chat": "factory.agent.formats.chat:ChatFormat",
}
"""Module and class of each format; a class takes the policy's folder."""


def load_format(policy_dir: Path) -> ActionFormat:
    """The format that the policy in `policy_dir` speaks. Raises UserError when its policy.json does not say."""
    path = policy_dir / POLICY_FILE
    try:
        name = json.loads(path.read_text(encoding="utf-8"))["format"]
        module, _, cls = FORMATS[name].partition(":")
    except FileNotFoundError:
        raise UserError("policy", str(policy_dir), f"a folder with {POLICY_FILE}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError("policy", str(path), f'an object whose "format" is one of {", ".join(FORMATS)}') from None
    loaded: ActionFormat = getattr(importlib.import_module(module), cls)(policy_dir)
    return loaded
