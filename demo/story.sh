#!/usr/bin/env bash
# The main job from end to end, in a scratch repository: no server, no account, no configuration.
# `make demo` runs it with the quire of this checkout.
set -euo pipefail

here=$(mktemp -d)
export QUIRE_KEYS="$here/keys" QUIRE_ACTOR="demo-agent" QUIRE_ON_BEHALF_OF="Ada"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
cleanup() {
    (cd "$here/project" 2>/dev/null && quire host stop >/dev/null 2>&1) || true
    rm -rf "$here"
}
trap cleanup EXIT

step() { printf '\n== %s\n' "$*"; }
try() {
    printf '$'
    for word in "$@"; do
        case $word in *' '*) printf " '%s'" "$word" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n'
    "$@"
}

git init --quiet --initial-branch=main "$here/project" && cd "$here/project"

step "A repository is set up"
try quire init
git config user.name Ada
git config user.email ada@example.org
git add --all
git commit --quiet --message "Set up Quire"

step "An agent writes a task"
try quire new "Sum up the orders of a region"
cat > notebooks/sum_up_the_orders_of_a_region.py <<'TASK'
# %% [markdown]
# # Sum up the orders of a region
#
# Adds up the orders that are above a limit, for the weekly report.

# %% parameters tags=["parameters"]
region: str = "eu"  # whose orders
limit: float = 10.0  # smaller ones do not count

# %% gather
orders = {"eu": [12.5, 3.0, 40.0], "us": [9.0, 21.0]}[region]
print(f"{len(orders)} orders in {region}")

# %% decide
counted = [order for order in orders if order >= limit]
assert counted, "no order is above the limit"

# %% report
from quire.runtime import glue

glue("orders", len(counted))
glue("total", sum(counted))
TASK

step "It is committed to a branch, run, and put up for review"
try quire commit notebooks/sum_up_the_orders_of_a_region.py --message "Sum up the orders of a region"
try quire run notebooks/sum_up_the_orders_of_a_region.py -p region us --quiet
try quire propose --title "Sum up the orders of a region"

step "The gate runs what the change affects"
try quire ci

step "Every run is archived on the branch reports, and signed"
try quire log
try quire verify --all

step "A person reviews the change: source, results, proof"
try quire review 1
try quire review 1 --approve

step "It is merged"
try quire merge-proposal 1
try git log --oneline --graph main

step "Somebody changes one digit of an archived output"
run=$(quire log --json -n 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["run_id"])')
path="runs/$(echo "$run" | cut -c1-10 | tr - /)/$run/notebook.ipynb"
GIT_INDEX_FILE="$here/index" git read-tree reports
forged=$(git show "reports:$path" | sed 's/3 orders in eu/4 orders in eu/' | git hash-object -w --stdin)
GIT_INDEX_FILE="$here/index" git update-index --cacheinfo "100644,$forged,$path"
tree=$(GIT_INDEX_FILE="$here/index" git write-tree)
commit=$(git commit-tree "$tree" -p reports -m "Tidy up")
git update-ref refs/heads/reports "$commit"
printf '$ quire verify %s\n' "$run"
if quire verify "$run"; then
    echo "the forgery was not noticed" >&2
    exit 1
fi

step "It was noticed. That is the whole story."
