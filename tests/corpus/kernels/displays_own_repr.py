# %% [markdown]
# # Objects that know how to show themselves

# %%
class Card:
    def __init__(self, text):
        self.text = text
    def _repr_html_(self):
        return f"<div>{self.text}</div>"
    def _repr_markdown_(self):
        return f"**{self.text}**"
    def __repr__(self):
        return f"Card({self.text!r})"
Card("x")

# %%
[Card('in a list')]

# %%
class Bundle:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": "bundle", "text/html": "<u>bundle</u>"}, {"text/html": {"isolated": True}}
Bundle()

# %%
class Shown:
    def _ipython_display_(self):
        print("shown by itself")
Shown()

# %%
print(Card('printed'))

# %%
None

# %%
...
