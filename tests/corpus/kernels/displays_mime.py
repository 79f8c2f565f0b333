# %% [markdown]
# # Rich objects of IPython.display

# %%
from IPython.display import HTML, JSON, SVG, Javascript, Latex, Markdown, Math, Pretty, display
display(HTML("<i>html</i>"), Markdown("**md**"), Latex("$x$"), Math(r"\alpha"))

# %%
display(JSON({"a": [1, None, True]}), Javascript("1"), Pretty("pretty"))

# %%
SVG('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>')

# %%
display({"text/plain": "plain", "text/html": "<b>x</b>", "application/x-own+json": {"k": 1}}, raw=True)

# %%
display(1, metadata={"image/png": {"width": 10}})

# %%
HTML('<p>result</p>')
