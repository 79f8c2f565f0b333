"""`quire find` and what its hits lead to, as a user calls them."""

from __future__ import annotations

import json
import re
import subprocess

from scratch import Scratch

TASK = '# %% load\nvalue = "needle_42"\nprint("\\x1b[31mred needle\\x1b[0m")\n\n# %% other\nx = 1\n'


def test_from_a_word_to_the_cell(repo: Scratch) -> None:
    repo.write("notebooks/hay.py", TASK)
    _, told = repo.run("notebooks/hay.py")
    done = repo.quire("find", "needle_42")
    assert done.returncode == 0, done.stderr
    assert told["run_id"] in done.stdout
    assert "\x1b" not in done.stdout
    command = next(line.strip() for line in done.stdout.split("\n") if "quire show" in line)
    shown = repo.quire(*command.split()[1:])
    assert 'value = "needle_42"' in shown.stdout
    assert "red needle" in shown.stdout
    assert "x = 1" not in shown.stdout
    assert "\x1b" not in shown.stdout
    one = json.loads(repo.quire("show", told["run_id"], "--cell", "other", "--json").stdout)
    assert [cell["source"] for cell in one["cells"]] == ["x = 1"]
    wrong = repo.quire("show", "last", "--cell", "nowhere")
    assert wrong.returncode == 2
    assert "has no cell 'nowhere'" in wrong.stderr


def test_nothing_found_is_no_error_and_a_bad_question_is(repo: Scratch) -> None:
    done = repo.quire("find", "nothing", "--json")
    assert (done.returncode, json.loads(done.stdout)["runs"]) == (0, [])
    for arguments in (("AND",), ("x" * 10_000,), ("--like", "last", "word"), ("--since", "soon")):
        done = repo.quire("find", *arguments, "--json")
        assert done.returncode == 2, arguments
        assert json.loads(done.stdout)["error"]["hint"]
    assert (
        not (repo.root / ".quire" / "index.sqlite").exists() or repo.quire("find").returncode == 0
    )


def test_words_to_leave_out_are_no_options(repo: Scratch) -> None:
    repo.write("notebooks/hay.py", TASK)
    _, told = repo.run("notebooks/hay.py")
    for left_out, found in (("-nowhere", True), ("-needle", False), ("-code:value", False)):
        done = repo.quire("find", "needle_42", left_out, "-n1", "--json")
        assert done.returncode == 0, done.stderr
        runs = [run["run_id"] for run in json.loads(done.stdout)["runs"]]
        assert runs == ([told["run_id"]] if found else []), left_out
    for typo in (("--tsak", "x"), ("-x",)):
        assert repo.quire("find", "needle_42", *typo).returncode == 2


def test_runs_that_no_archive_has_are_found_as_long_as_they_are_here(repo: Scratch) -> None:
    repo.write("notebooks/hay.py", TASK)
    _, told = repo.run("notebooks/hay.py", "--no-archive")
    (hit,) = json.loads(repo.quire("find", "needle_42", "--json").stdout)["runs"]
    assert (hit["run_id"], hit["archived"]) == (told["run_id"], False)


def test_a_digest_keeps_the_archive_verified(repo: Scratch) -> None:
    repo.run("notebooks/sum.py")
    assert repo.quire("digest", "--write").returncode == 0
    repo.run("notebooks/sum.py")
    assert repo.quire("digest", "--write").returncode == 0
    done = repo.quire("verify", "--all")
    assert done.returncode == 0, done.stdout
    assert "verified: 2 runs of git branch reports" in done.stdout
    message = repo.git("log", "-1", "--format=%B", "reports")
    lie = "a page that nobody sealed\n"
    stream = (
        f"commit refs/heads/reports\ncommitter E <e@x> 1 +0000\ndata {len(message) + 1}\n"
        f"{message}\n\nfrom refs/heads/reports^0\nM 100644 inline DIGEST.md\n"
        f"data {len(lie)}\n{lie}\n"
    )
    subprocess.run(
        ["git", "fast-import", "--quiet"], cwd=repo.root, input=stream, text=True, check=True
    )
    done = repo.quire("verify", "--all")
    assert done.returncode == 1
    assert "step seal" in done.stdout


def test_what_no_archive_has_stays_out_of_the_page_in_the_archive(repo: Scratch) -> None:
    repo.run("notebooks/sum.py")
    repo.write("notebooks/own.py", "# %%\nfrom quire.runtime import note\nnote('for my eyes')\n")
    _, told = repo.run("notebooks/own.py", "--no-archive")
    shown = repo.quire("digest").stdout
    assert f"for my eyes ({told['run_id']})" in shown
    assert "wrote reports:DIGEST.md: 1 runs" in repo.quire("digest", "--write").stdout
    page = repo.git("show", "reports:DIGEST.md")
    assert "for my eyes" not in page
    assert "notebooks/sum.py" in page
    for link in re.findall(r"\]\(([^)]*)\)", page):
        assert repo.git("cat-file", "-t", f"reports:{link}").strip() == "blob"
