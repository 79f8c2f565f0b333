# %% [markdown]
"""
# Title

# %% not a cell
"""

# %% [markdown]
r"""
$\alpha$
"""

# %% [markdown]
'''close'''

# %%
"""a docstring stays code"""
