"""`python -m bench.masking`: how fast secrets are found, in CPU time, with 64 KB pieces."""

from __future__ import annotations

import random
import string
import time
from collections.abc import Callable

from quire.masking.masker import Masker, Secret

SIZE = 16_000_000
CHUNK = 65536


def main() -> None:
    rng = random.Random(1)
    letters = string.ascii_letters + string.digits
    values = ["".join(rng.choices(letters, k=36)) for _ in range(10)]
    secrets = [Secret(f"S{n}_TOKEN", value) for n, value in enumerate(values)]
    masker = Masker(secrets)
    print(f"set-up, 10 secrets       {best(lambda: Masker(secrets)) * 1e3:8.2f} ms")
    print(f"mask('short string')     {per_call(lambda: masker.mask('short string')):8.2f} µs")
    lines = ordinary(rng)
    text = "".join(lines)
    print(f"ordinary text            {speed(masker, text):8.1f} MB/s")
    # One line in twenty has a secret, plain or encoded, or a token.
    leaks = [*values[:5], *(v.encode().hex() for v in values[5:]), "gh" + "p_" + "a1B2" * 9]
    leaky = (x if rng.random() > 0.05 else f"{x[:30]} {rng.choice(leaks)}\n" for x in lines)
    print(f"text with many hits      {speed(masker, ''.join(leaky)):8.1f} MB/s")
    print(f"20-byte lines            {1e6 / per_call(feeder(masker)):8.0f} calls/s")
    hard = {"eyJ": "eyJ", "-----BEGIN": "-----BEGIN ", "a, secret aaa…": "a"}
    repeated = Masker([*secrets, Secret("A", "a" * 20)])
    for name, unit in hard.items():
        took = best(lambda unit=unit: feed(repeated, unit * (10_000_000 // len(unit))), 1)
        print(f"10 MB of {name:15} {took:8.2f} s")


def ordinary(rng: random.Random) -> list[str]:
    """Log lines, code, numbers, a digest and a URL now and then."""
    kinds: list[Callable[[int], str]] = [
        lambda n: f"2024-01-{n % 28 + 1:02} 10:00:00 INFO step {n} loss={rng.random():.6f}\n",
        lambda n: f"    for item in self.items[{n}:]: total += item.price * item.count\n",
        lambda n: f"{n},{rng.gauss(0, 1):.5f},{rng.randrange(10**9)},name-{n % 97},True\n",
        lambda n: f"The quick brown fox jumps over the lazy dog and finds {n} more of them.\n",
    ]
    seldom: list[Callable[[int], str]] = [
        lambda n: f"commit {rng.randbytes(20).hex()}\n",
        lambda n: f"GET https://example.org:8443/v1/items?page={n} 200\n",
    ]
    block = [rng.choice(seldom if rng.random() < 0.04 else kinds)(n) for n in range(20_000)]
    return block * (SIZE // sum(map(len, block)) + 1)


def feed(masker: Masker, text: str) -> None:
    stream = masker.stream()
    for start in range(0, len(text), CHUNK):
        stream.feed(text[start : start + CHUNK])
    stream.flush()


def feeder(masker: Masker) -> Callable[[], object]:
    stream = masker.stream()
    return lambda: stream.feed("line 123 of output.\n")


def speed(masker: Masker, text: str) -> float:
    return len(text) / 1e6 / best(lambda: feed(masker, text))


def per_call(work: Callable[[], object], calls: int = 50_000) -> float:
    def many() -> None:
        for _ in range(calls):
            work()

    return best(many) / calls * 1e6


def best(work: Callable[[], object], times: int = 3) -> float:
    took = []
    for _ in range(times):
        start = time.process_time()
        work()
        took.append(time.process_time() - start)
    return min(took)


if __name__ == "__main__":
    main()
