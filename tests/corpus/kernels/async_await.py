# %% [markdown]
# # await at the top level

# %%
import asyncio

async def double(x):
    await asyncio.sleep(0)
    return 2 * x

# %%
await double(21)

# %%
results = await asyncio.gather(*(double(i) for i in range(5)))
print(results)

# %% tags=["raises-exception"]
await asyncio.wait_for(asyncio.sleep(10), timeout=0.01)

# %% tags=["raises-exception"]
async def fails():
    raise ValueError("in a coroutine")

await fails()
