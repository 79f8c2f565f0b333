# %% [markdown]
# # Child processes write to fd 1 and 2

# %%
import os
import subprocess
import sys

# %%
status = os.system("echo from system; echo error >&2")

# %%
done = subprocess.run(["sh", "-c", "echo one; echo two"])
print(done.returncode, file=sys.stderr)

# %%
subprocess.run("cat", input="piped", text=True, capture_output=True).stdout

# %% tags=["raises-exception"]
subprocess.run(["false"], check=True)

# %%
first = subprocess.Popen(["printf", "b\na\n"], stdout=subprocess.PIPE)
second = subprocess.run(["sort"], stdin=first.stdout, capture_output=True, text=True)
first.wait()
print(second.stdout.split())

# %%
code = "import sys; sys.stdout.write('x' * 50000)"
done = subprocess.run([sys.executable, "-c", code])
