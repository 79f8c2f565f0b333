# %% [markdown]
# # A traceback through library code

# %%
import pandas as pd
frame = pd.DataFrame({"a": [1]})

# %% tags=["raises-exception"]
frame["b"]

# %% tags=["raises-exception"]
import json
json.loads("{broken")
