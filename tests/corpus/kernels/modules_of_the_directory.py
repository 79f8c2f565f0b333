# %% [markdown]
# # Imports from the working directory

# %%
import pathlib
written = pathlib.Path("sidekick.py").write_text("def greet(n):\n    return f'hello {n}'\n")

# %%
import sidekick
sidekick.greet("you")

# %%
import importlib
written = pathlib.Path("sidekick.py").write_text("def greet(n):\n    return f'hello again {n}'\n\n\n")
importlib.reload(sidekick).greet("you")

# %%
sorted(p.name for p in pathlib.Path().iterdir() if p.suffix == '.py')
