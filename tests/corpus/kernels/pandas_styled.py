# %% [markdown]
# # A styled frame

# %%
import pandas as pd
frame = pd.DataFrame({"a": [1, -2], "b": [3.14159, 2.71828]})
frame.style.format("{:.2f}").set_uuid("fixed").set_caption("styled")
