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
