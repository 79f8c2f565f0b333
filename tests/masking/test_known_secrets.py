from __future__ import annotations

from quire.masking.known_secrets import ENVIRONMENTS, Known


def test_a_masker_hides_what_comes_later_also_in_a_stream() -> None:
    known = Known()
    masker = known.masker(known.meet({"A_TOKEN": "first-secret-1"}))
    stream = masker.stream()
    assert stream.feed("first-secret-1\n") == "[masked:A_TOKEN]\n"
    known.meet({"B_TOKEN": "other-secret-2"})
    assert stream.feed("other-secret-2\n") == "[masked:B_TOKEN]\n"
    assert masker.mask("first-secret-1 other-secret-2") == "[masked:A_TOKEN] [masked:B_TOKEN]"


def test_what_is_remembered_has_a_bound_and_own_secrets_do_not_count() -> None:
    known = Known(most=2)
    own = known.meet({"OWN_TOKEN": "own-secret-00"})
    for n in range(5):
        known.meet({f"N{n}_TOKEN": f"other-secret-{n}"})
    masker = known.masker(own)
    assert masker.mask("own-secret-00") == "[masked:OWN_TOKEN]"
    assert masker.mask("other-secret-0 other-secret-4") == "other-secret-0 [masked:N4_TOKEN]"


def test_one_that_is_met_again_is_not_the_next_to_be_forgotten() -> None:
    known = Known(most=2)
    for env in ({"A_KEY": "secret-aaaa"}, {"B_KEY": "secret-bbbb"}) * 2:
        known.meet(env)
    known.meet({"A_KEY": "secret-aaaa"})
    known.meet({"C_KEY": "secret-cccc"})
    assert known.masker(()).mask("secret-aaaa secret-bbbb") == "[masked:A_KEY] secret-bbbb"


def test_the_same_variables_with_other_names_to_hide_are_looked_at_anew() -> None:
    known = Known()
    assert known.meet({"PLAIN": "ordinary words"}) == ()
    assert [one.name for one in known.meet({"PLAIN": "ordinary words"}, ["PLAIN"])] == ["PLAIN"]
    for n in range(2 * ENVIRONMENTS):
        known.meet({"N": str(n)})
    assert known.masker(()).mask("ordinary words") == "[masked:PLAIN]"
