# %% [markdown]
# # What libraries look at

# %%
shell = get_ipython()
type(shell).__name__, shell.__class__.__module__.split(".")[0], __name__

# %%
import sys
"ipykernel" in sys.modules, hasattr(sys, "ps1"), hasattr(shell, "kernel")

# %%
shell.run_line_magic('pwd', '') is not None

# %%
shell.run_cell("nested = 5")
nested

# %%
calls = []
shell.events.register("post_execute", lambda: calls.append(1))

# %%
len(calls)

# %%
shell.execution_count

# %%
print(sys.argv[1:] == [] or len(sys.argv) > 0)
