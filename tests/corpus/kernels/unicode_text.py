# %% [markdown]
# # Text of many kinds

# %%
print("naïve Ω ж 漢字 עברית ไทย")
print("🎻 👩‍👩‍👧 🇩🇪 e\u0301")

# %%
'\u2028 \x7f \ufeff'

# %%
{'ключ': 'значение', '🎻': '漢字'}

# %%
print("\N{GREEK SMALL LETTER ALPHA}", "ß".upper(), len("👩‍👩‍👧"))

# %% tags=["raises-exception"]
raise ValueError("Fehler: größer als 漢字 🎻")
