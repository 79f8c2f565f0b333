# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # System health
#
# Looks at load, memory, disk and uptime of the machine it runs on, decides whether each is within
# its limit, and reports a verdict that a program can act on. Standard library only, so it works on
# any machine.

# %% parameters tags=["parameters"]
threshold: float = 1.0  # highest load average per core that counts as healthy
disk_limit: float = 90.0  # percent of a disk that may be in use
memory_limit: float = 95.0  # percent of memory that may be in use
hostname: str = ""  # name to report; empty means ask the machine
paths: list = ["/"]  # folders whose disks are looked at

# %% gather
import os
import platform
import shutil
import socket
import time

name = hostname or socket.gethostname()
cores = os.cpu_count() or 1
try:
    load = os.getloadavg()
except (AttributeError, OSError):  # not every system has one
    load = (0.0, 0.0, 0.0)


def memory():
    """Total and available bytes, where the system says."""
    try:
        with open("/proc/meminfo") as file:
            rows = dict(line.split(":", 1) for line in file)
        return tuple(int(rows[key].split()[0]) * 1024 for key in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return None


def uptime():
    try:
        with open("/proc/uptime") as file:
            return float(file.read().split()[0])
    except (OSError, ValueError):
        return None


disks = {path: shutil.disk_usage(path) for path in paths if os.path.exists(path)}
print(f"{name}: {platform.system()} {platform.release()}, {cores} cores, Python {platform.python_version()}")

# %% [markdown]
# ## Decide
#
# Each check compares one number with its limit. The machine is healthy when all of them pass.

# %% decide
checks = [
    {
        "check": "load per core",
        "value": round(load[0] / cores, 2),
        "limit": threshold,
        "unit": "",
    }
]
ram = memory()
if ram:
    total, available = ram
    used = round(100 * (1 - available / total), 1)
    checks.append({"check": "memory", "value": used, "limit": memory_limit, "unit": "%"})
for path, disk in disks.items():
    used = round(100 * disk.used / disk.total, 1) if disk.total else 0.0
    checks.append({"check": f"disk {path}", "value": used, "limit": disk_limit, "unit": "%"})
for check in checks:
    check["ok"] = check["value"] <= check["limit"]
status = "healthy" if all(check["ok"] for check in checks) else "degraded"

for check in checks:
    mark = "ok  " if check["ok"] else "HIGH"
    print(f"{mark} {check['check']:<16} {check['value']:>7}{check['unit']} (limit {check['limit']}{check['unit']})")

# %% [markdown]
# ## Report

# %% report
from IPython.display import Markdown

from quire.runtime import glue

seconds = uptime()
glue("hostname", name)
glue("status", status)
glue("checks", checks)
glue("uptime_hours", round(seconds / 3600, 1) if seconds is not None else None)
glue("measured_at", time.strftime("%Y-%m-%dT%H:%M:%S%z"))

rows = "\n".join(
    f"| {c['check']} | {c['value']}{c['unit']} | {c['limit']}{c['unit']} | {'ok' if c['ok'] else '**high**'} |"
    for c in checks
)
Markdown(f"**{name} is {status}.**\n\n| check | value | limit | |\n|---|---|---|---|\n{rows}")
