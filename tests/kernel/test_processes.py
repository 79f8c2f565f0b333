"""What is ended as a stray, and what is not: processes that Quire itself has started."""

from __future__ import annotations

import subprocess
import sys

# In a process of its own, for it becomes one that adopts orphans.
SCRIPT = """
import os, subprocess, sys, threading, time
from pathlib import Path
from quire.kernel import processes as children

children.alone()
children.alone()  # twice is as good as once
over = threading.Event()
ended = []

def work():
    while not over.is_set():
        ended.append(subprocess.run(["sleep", "0.02"]).returncode)

long = subprocess.Popen(["sleep", "600"])
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
orphan = int(subprocess.run(
    ["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"], capture_output=True, text=True
).stdout)
assert Path(f"/proc/{orphan}").exists()
before = len(ended)
children._sweep(4.0)
while len(ended) < before + 40:
    time.sleep(0.01)
children._sweep(0.5)
over.set()
for thread in threads:
    thread.join()
print("orphan", Path(f"/proc/{orphan}").exists())
print("ended", set(ended))
print("long", long.poll())
long.kill()
long.wait()
for _ in range(1_200):
    subprocess.run(["true"])
print("forgotten", len(children._started) <= children._ROOM + 1)
"""


def test_only_strays_are_ended() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "orphan False",
        "ended {0}",
        "long None",
        "forgotten True",
    ]
