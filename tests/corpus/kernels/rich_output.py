# %% [markdown]
# # rich tables, trees, markup

# %%
from rich import print as rprint
from rich.table import Table
from rich.tree import Tree
rprint("[bold red]red[/bold red] plain")

# %%
table = Table(title="Shops")
table.add_column("name")
table.add_column("sum", justify="right")
table.add_row("a", "10")
table.add_row("b", "200")
table

# %%
tree = Tree("root")
tree.add("leaf")
rprint(tree)

# %%
rprint({'a': [1, 2], 'b': None})
