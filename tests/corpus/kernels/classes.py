# %% [markdown]
# # Classes, properties, inheritance, pickling

# %%
import pickle
class Animal:
    legs = 4
    def __init__(self, name):
        self.name = name
    @property
    def loud(self):
        return self.name.upper()
class Bird(Animal):
    legs = 2
    def __repr__(self):
        return f"Bird({self.name!r})"

# %%
Bird('wren')

# %%
Bird('wren').loud, Bird.mro()[1].__name__

# %%
Animal('cat')

# %%
pickle.loads(pickle.dumps(Bird("tit"))), Bird.__module__

# %%
import inspect
print(inspect.getsource(Bird.__repr__))

# %% tags=["raises-exception"]
Animal("cat").missing
