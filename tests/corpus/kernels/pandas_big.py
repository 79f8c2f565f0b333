# %% [markdown]
# # A frame longer and wider than the display

# %%
import numpy as np
import pandas as pd
pd.DataFrame(np.arange(200 * 40).reshape(200, 40))

# %%
pd.set_option("display.max_rows", 6)
pd.DataFrame({"x": range(1000)})
