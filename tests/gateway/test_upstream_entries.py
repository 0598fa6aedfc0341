"""Whose an entry of the cache is: by its endpoint, and by its account where several are there."""

import pytest

from thoughtline.engine.endpoints import Upstream
from thoughtline.gateway.auth import Auth, Principal
from thoughtline.gateway.upstream_entries import UpstreamEntries
from thoughtline.stores.base import CLIENTS_OWN, EntryFilter, ThoughtEntry

AUTH = Auth(b"secret" * 8)
HERE, THERE = "https://here.test", "https://there.test"
ORGANIZATION = {"OpenAI-Organization": "acme"}


def upstream(name, **more):
    return Upstream(**{"name": name, "base_url": HERE, "policy": "generic", **more})


def entry(endpoint=HERE, *, account="", tenant="T", provider="generic"):
    return ThoughtEntry(
        position=(1, 0),
        tenant=tenant,
        session="s",
        turn="t",
        endpoint=endpoint,
        account=account,
        provider=provider,
    )


def account(upstream, tenant="T"):
    return AUTH.account(Principal(tenant=tenant, account=tenant), upstream)


def test_one_that_is_alone_at_its_address_has_all_of_it():
    alone = UpstreamEntries([upstream("Mine", key="new"), upstream("o", base_url=THERE)], AUTH)
    assert alone.selected("mine") == EntryFilter(provider="mine", endpoints=(HERE,))
    assert alone.alike("mine") == ()
    assert alone.made_by(entry(account="of a key that it had before")) == "Mine"


def test_the_name_of_a_policy_or_of_nobody_selects_by_that():
    found = UpstreamEntries([upstream("mine")], AUTH)
    assert found.selected("generic") == EntryFilter(provider="generic")
    assert found.selected(None) == EntryFilter()
    assert found.alike("generic") == found.alike(None) == ()
    assert found.made_by(entry(THERE)) is None


def test_keys_tell_those_at_one_address_apart():
    work, home = upstream("work", key="one"), upstream("home", key="two")
    passing = upstream("passing")
    found = UpstreamEntries([work, home, passing], AUTH)
    assert found.selected("work").accounts == {HERE: account(work)}
    assert found.selected("passing").accounts == {HERE: CLIENTS_OWN}
    assert [found.alike(name) for name in ("work", "home", "passing")] == [()] * 3
    for one in (work, home, passing):
        assert found.made_by(entry(account=account(one))) == one.name
    assert found.made_by(entry(account="of a key that one of them had before")) is None


@pytest.mark.parametrize("key", ["", "same"])
def test_those_with_the_same_key_or_none_are_alike(key):
    one, two = upstream("one", key=key), upstream("two", key=key)
    found = UpstreamEntries([one, two, upstream("three", key="another")], AUTH)
    assert found.alike("one") == found.alike("TWO") == ("one", "two")
    assert found.alike("three") == ()
    assert found.made_by(entry(account=account(one))) is None


def test_what_an_account_depends_on_in_another_way_is_not_told_from_others():
    chosen, keyed = upstream("chosen", headers=ORGANIZATION), upstream("keyed", key="one")
    found = UpstreamEntries([chosen, keyed], AUTH)
    assert found.selected("chosen").accounts == {}
    assert found.alike("chosen") == ("chosen", "keyed")
    assert found.alike("keyed") == ()
    assert found.made_by(entry(account=account(chosen))) == "chosen"


def test_only_where_they_share_an_address():
    both = upstream("both", key="one", endpoints={"messages": THERE})
    found = UpstreamEntries([both, upstream("home", key="two")], AUTH)
    assert found.selected("both").endpoints == (HERE, THERE)
    assert found.selected("both").accounts == {HERE: account(both)}
    assert found.made_by(entry(THERE, account="of a key that it had before")) == "both"


def test_one_of_the_settings_goes_before_one_that_is_only_known():
    found = UpstreamEntries([upstream("mine"), upstream("known", configured=False)], AUTH)
    assert found.made_by(entry()) == "mine"
    assert found.alike("mine") == ("known", "mine")


@pytest.mark.parametrize("key", ["", "same"])
def test_other_providers_at_one_address_are_told_by_what_made_the_entry(key):
    one = upstream("one", key=key, policy="deepseek")
    two = upstream("two", key=key, policy="kimi")
    twin = upstream("twin", key=key, policy="kimi")
    found = UpstreamEntries([one, two, twin], AUTH)
    assert found.selected("one").providers == {HERE: "deepseek"}
    assert found.selected("two").providers == {HERE: "kimi"}
    assert found.alike("one") == ()
    assert found.alike("two") == ("twin", "two")
    made = account(one)
    assert found.made_by(entry(account=made, provider="deepseek")) == "one"
    assert found.made_by(entry(account=made, provider="kimi")) is None  # one of two
    assert found.made_by(entry(account=made, provider="glm")) is None


@pytest.mark.parametrize("name", ["mimo", "MiMo", "xiaomi-mimo", "Xiaomi-MiMo"])
def test_an_upstream_is_found_by_any_of_its_names(name):
    found = UpstreamEntries([upstream("mimo", policy="mimo")], AUTH)
    assert found.selected(name) == EntryFilter(provider="mimo", endpoints=(HERE,))
    assert UpstreamEntries([], AUTH).selected(name) == EntryFilter(provider="mimo")
