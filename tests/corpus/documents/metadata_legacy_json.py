# %% {"tags": ["a"], "slideshow": {"slide_type": "skip"}}
x = 1

# %% titled {"a": 1}

# %% [markdown] {"b": null}
# text
