# %% [markdown]
# # Classes of exceptions made in the notebook

# %%
class TaskError(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code

# %% tags=["raises-exception"]
raise TaskError(3)

# %%
try:
    raise TaskError(4)
except TaskError as error:
    print(error.code, error, repr(error))

# %% tags=["raises-exception"]
assert 1 == 2, "not equal"
