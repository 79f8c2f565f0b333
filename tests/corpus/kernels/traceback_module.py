# %% [markdown]
# # Tracebacks printed by the notebook itself

# %%
import sys
import traceback
try:
    1 / 0
except ZeroDivisionError:
    print(traceback.format_exc().splitlines()[-1])
    traceback.print_exc(limit=0)

# %%
%xmode Minimal

# %% tags=["raises-exception"]
[][0]

# %%
%xmode Context
