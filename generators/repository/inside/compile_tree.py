"""Compiles every module below a folder and prints {path of the bytecode file: base64} as JSON.

The bytecode is marked as never to be checked against its source (the tree is read-only), and marshalled in format
2, which holds neither reference flags nor interning marks: its bytes depend on the source and the interpreter alone.
"""

import base64
import importlib.util
import json
import marshal
import os
import sys


def main(root):
    compiled = {}
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            if not name.endswith(".py"):
                continue
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                source = file.read()
            try:
                code = compile(source, path, "exec", dont_inherit=True)
            except (SyntaxError, ValueError):
                continue
            header = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(source)
            target = os.path.relpath(importlib.util.cache_from_source(path), root)
            compiled[target] = base64.b64encode(header + marshal.dumps(code, 2)).decode()
    json.dump(compiled, sys.stdout)


main(sys.argv[1])
