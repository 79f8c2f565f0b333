# %% [markdown]
# # C code and raw writes

# %%
import ctypes
import os
written = os.write(1, b"raw one\n")

# %%
written = os.write(2, b"raw two\n")

# %%
libc = ctypes.CDLL(None)
printed = libc.puts(b"from libc")
flushed = libc.fflush(None)

# %%
written = os.write(1, b"<" + bytes(range(250, 256)) + b">")
