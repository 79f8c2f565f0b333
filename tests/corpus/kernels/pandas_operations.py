# %% [markdown]
# # Group, merge, pivot, resample

# %%
import pandas as pd
sales = pd.DataFrame({"shop": list("aabb"), "day": [1, 2, 1, 2], "sum": [10, 20, 30, 40]})
sales.groupby("shop")["sum"].agg(["mean", "max"])

# %%
sales.pivot(index="day", columns="shop", values="sum")

# %%
sales.merge(pd.DataFrame({"shop": ["a", "b"], "town": ["Ulm", "Bonn"]}), on="shop")

# %%
index = pd.date_range("2024-01-01", periods=6, freq="h")
pd.Series(range(6), index=index).resample("3h").sum()
