# %%
a = 1


# %%


b = 2



# %%

# %%
  
# %% [markdown]
# text
#


def_ = 1

