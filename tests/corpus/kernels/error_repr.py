# %% [markdown]
# # Objects whose display raises

# %%
class Html:
    def _repr_html_(self):
        raise ValueError("no html")
    def __repr__(self):
        return "Html()"

class Plain:
    def __repr__(self):
        raise ValueError("no repr")

# %% tags=["raises-exception"]
Html()

# %% tags=["raises-exception"]
Plain()

# %%
print('still here')
