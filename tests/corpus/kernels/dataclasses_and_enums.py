# %% [markdown]
# # Dataclasses, enums, named tuples, matching

# %%
from dataclasses import dataclass, field, asdict
from enum import Enum, Flag, auto
from typing import NamedTuple

@dataclass(order=True)
class Item:
    price: float
    name: str = "thing"
    tags: list[str] = field(default_factory=list)

class Colour(Enum):
    RED = auto()
    BLUE = auto()

class Point(NamedTuple):
    x: int
    y: int

# %%
sorted([Item(2.0, 'b'), Item(1.0, 'a')])

# %%
asdict(Item(3.0))

# %%
Colour.RED, list(Colour)

# %%
match Point(1, 2):
    case Point(x=1, y=y):
        print("matched", y)

# %% tags=["raises-exception"]
Item()
