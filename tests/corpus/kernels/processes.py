# %% [markdown]
# # multiprocessing by fork

# %%
import multiprocessing
import os
context = multiprocessing.get_context("fork")
def square(x):
    return x * x

# %%
with context.Pool(2) as pool:
    print(pool.map(square, range(6)))

# %%
def shout():
    os.write(1, b"from the child\n")
process = context.Process(target=shout)
process.start()
process.join()

# %%
process.exitcode

# %%
queue = context.SimpleQueue()
process = context.Process(target=queue.put, args=({"answer": 42},))
process.start()
print(queue.get())
process.join()
