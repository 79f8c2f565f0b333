# %% tags=["parameters"] name="p"
n = 1

# %% t k={"a": [1, null]} z="q = r" flag=true
x = 2

# %% flag x=1 .hidden

# %% x=(1, 2) y=None
