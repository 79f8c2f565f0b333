# %% [markdown]
# # Threads, pools, locals

# %%
import concurrent.futures
import threading

# %%
thread = threading.Thread(target=print, args=("from a thread",))
thread.start()
thread.join()

# %%
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(lambda x: x * x, range(8))))

# %%
lock, total = threading.Lock(), 0
def add():
    global total
    for _ in range(1000):
        with lock:
            total += 1
threads = [threading.Thread(target=add) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
total

# %%
threading.current_thread() is threading.main_thread()
