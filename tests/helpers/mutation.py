"""A file as damage or malice leaves it, for the tests that read mutated files."""

import random


def mutated(whole: bytes, rng: random.Random) -> bytes:
    """The same bytes cut, with some changed, partly doubled, filled, or one bit flipped."""
    data, at = bytearray(whole), rng.randrange(len(whole))
    kind = rng.randrange(5)
    if kind == 0:
        data = data[:at]
    elif kind == 1:
        for _ in range(rng.randrange(1, 8)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif kind == 2:
        data = data[:at] + data[at // 2 :]
    elif kind == 3:
        data[at : at + 16] = bytes(rng.randrange(256) for _ in range(16))
    else:
        data[at] ^= 1 << rng.randrange(8)
    return bytes(data)
