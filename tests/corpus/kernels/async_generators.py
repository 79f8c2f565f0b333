# %% [markdown]
# # async for, async with, comprehensions

# %%
import contextlib

async def numbers(n):
    for i in range(n):
        yield i

@contextlib.asynccontextmanager
async def opened(name):
    print("open", name)
    yield name.upper()
    print("close", name)

# %%
[i async for i in numbers(4) if i % 2]

# %%
async with opened("door") as door:
    print(door)
