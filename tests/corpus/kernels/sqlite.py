# %% [markdown]
# # A database in memory

# %%
import sqlite3
import pandas as pd
db = sqlite3.connect(":memory:")
db.execute("create table t (id integer primary key, word text)")
db.executemany("insert into t (word) values (?)", [("one",), ("two",), ("drei",)])
db.execute("select count(*) from t").fetchone()

# %%
pd.read_sql('select * from t order by word', db)

# %% tags=["raises-exception"]
db.execute("select * from missing")
