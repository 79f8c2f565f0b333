# %% [markdown]
# # Data frames as text and HTML

# %%
import pandas as pd
frame = pd.DataFrame({"name": ["a", "b", "c"], "value": [1.5, None, 3.0]})
frame

# %%
frame.describe()

# %%
frame['value']

# %%
print(frame)
