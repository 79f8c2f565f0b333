# %% [markdown]
# # Tasks and queues over several cells

# %%
import asyncio
queue = asyncio.Queue()
seen = []

async def consume():
    while True:
        item = await queue.get()
        seen.append(item)
        queue.task_done()

task = asyncio.create_task(consume())

# %%
for item in range(3):
    queue.put_nowait(item)
await queue.join()
print(seen)

# %%
task.cancel()
try:
    await task
except asyncio.CancelledError:
    print("cancelled", task.cancelled())

# %%
async with asyncio.TaskGroup() as group:
    first = group.create_task(asyncio.sleep(0, "a"))
    second = group.create_task(asyncio.sleep(0, "b"))
print(first.result(), second.result())
