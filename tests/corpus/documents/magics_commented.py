# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %%
# %matplotlib inline
# !ls
# # %time
# ?print
# files = !ls

# %%
# %%time
x = 1

# %% cell magic
# %timeit \
#     sum(range(3))
