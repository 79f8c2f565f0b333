# %% [markdown]
# # json, re, datetime, collections, decimal

# %%
import collections, datetime, decimal, fractions, json, pprint, re, textwrap
print(json.dumps({"b": [1, None], "ä": "ö"}, indent=2, sort_keys=True, ensure_ascii=False))

# %%
re.findall(r'(\w)(\d)', 'a1 b2')

# %%
re.match(r'x', 'xyz')

# %%
datetime.datetime(2024, 2, 29, 12, 30), datetime.timedelta(days=1.5)

# %%
collections.Counter('mississippi').most_common(2), collections.deque([1, 2], maxlen=2)

# %%
decimal.Decimal("0.1") + decimal.Decimal("0.2"), fractions.Fraction(3, 6)

# %%
pprint.pprint({"key": list(range(30)), "nested": {"a": {"b": {"c": "d" * 30}}}})

# %%
2 ** 200, 1e300 * 1e10, float('nan'), 1j ** 2
