# %% [markdown]
# # stdout and stderr, flushed and not

# %%
import sys
for i in range(3):
    print("out", i, flush=True)
    print("err", i, file=sys.stderr, flush=True)

# %%
print("no newline", end="")
print(" joined", end="\n\n")
sys.stdout.writelines(["a\n", "b\n"])

# %%
import contextlib, io
buffer = io.StringIO()
with contextlib.redirect_stdout(buffer):
    print("hidden")
print(repr(buffer.getvalue()))

# %%
print("progress 1\rprogress 2\rdone")
print("bell\a tab\t nul\0 end")

# %%
print(sys.stdout.isatty(), sys.stdout.encoding.lower(), sys.stdin is not None)
