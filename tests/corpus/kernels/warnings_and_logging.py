# %% [markdown]
# # Warnings and log records

# %%
import logging
import warnings
warnings.warn("first warning")

# %%
warnings.warn("old", DeprecationWarning)

# %%
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.warn("recorded")
print(len(caught), caught[0].message)

# %%
logging.warning("root warning")
logging.info("not shown")

# %%
log = logging.getLogger("task")
handler = logging.StreamHandler()
handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
log.addHandler(handler)
log.propagate = False
log.setLevel("DEBUG")
log.debug("detail %s", 1)
try:
    1 / 0
except ZeroDivisionError:
    log.error("with traceback: %s", "yes")
