# %% [markdown]
# # capture and its pieces

# %%
%%capture caught
import sys
print("to stdout")
print("to stderr", file=sys.stderr)
display({"a": 1})

# %%
print(repr(caught.stdout), repr(caught.stderr), len(caught.outputs))

# %%
caught.show()

# %%
from IPython.utils.capture import capture_output
with capture_output() as inner:
    print("inside")
print(inner.stdout.upper())
