# %% [markdown]
# ```mermaid
# %% a comment of mermaid
# graph
# ```

# %% after
x = 1

# %% [markdown]
# ~~~
# unclosed

# %% a cell
