# %% [markdown]
# # tqdm in a notebook and on a stream

# %%
from tqdm.auto import tqdm
total = 0
for i in tqdm(range(5), desc="adding"):
    total += i
print(total)

# %%
import sys
from tqdm import tqdm as plain
for i in plain(range(3), file=sys.stdout, bar_format="{desc}{n_fmt}/{total_fmt}", mininterval=0):
    pass
