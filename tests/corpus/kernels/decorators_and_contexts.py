# %% [markdown]
# # Decorators, functools, contextlib

# %%
import contextlib
import functools

def traced(function):
    @functools.wraps(function)
    def wrapper(*args):
        print("call", function.__name__, args)
        return function(*args)
    return wrapper

@traced
@functools.lru_cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

# %%
fib(3)

# %%
@contextlib.contextmanager
def framed(word):
    print("<", word)
    try:
        yield word
    finally:
        print(word, ">")

with framed("a") as a, framed("b"):
    print(a)

# %% tags=["raises-exception"]
with framed("failing"):
    raise OSError("inside")

# %%
with contextlib.ExitStack() as stack:
    stack.callback(print, "last")
    print("first")
