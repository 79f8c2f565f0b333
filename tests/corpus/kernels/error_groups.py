# %% [markdown]
# # Exception groups and notes

# %% tags=["raises-exception"]
raise ExceptionGroup("several", [ValueError("a"), ExceptionGroup("inner", [KeyError("b")])])

# %%
try:
    raise ExceptionGroup("several", [ValueError("a"), TypeError("b")])
except* ValueError as group:
    print("values", group.exceptions)
except* TypeError as group:
    print("types", group.exceptions)

# %% tags=["raises-exception"]
error = ValueError("noted")
error.add_note("a note")
raise error
