"""JSON by the C parts of `json` alone: importing the module around them takes longer than most verdicts."""

import _json


class _Decoder:
    """What the scanner asks of a decoder; the same as the defaults of `json.loads`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def loads(text):
    """The value of canonical JSON, which begins with its first value and ends with its last."""
    return _json.make_scanner(_Decoder)(text, 0)[0]  # type: ignore[arg-type]  # anything with these names will do


def dumps(value):
    """JSON of text, numbers, truth values, None, lists and objects with text as keys."""
    encode = _json.make_encoder({}, None, _json.encode_basestring_ascii, None, ":", ",", False, False, True)  # type: ignore[arg-type]
    return "".join(encode(value, 0))
