import pytest

from answerkey.errors import UnknownNameError, UsageError
from answerkey.store import open_store
from answerkey.store.maintenance import copy_store
from answerkey.store.people import SESSION_SECONDS, People, Sites


def rows_of(store, table):
    with store.database.reading() as connection:
        return str(connection.run(f"SELECT * FROM {table}").fetchall())


def test_a_persons_token_works_until_they_are_removed_and_only_its_digest_is_kept(store_url):
    with open_store(store_url) as store:
        people = People(store)
        token = people.add("ann", "reviewer")
        assert people.holder_of(token).role == "reviewer"
        assert people.holder_of(token + "x") is None
        assert people.holder_of("") is None
        assert token not in rows_of(store, "people")
        with pytest.raises(UsageError, match="already a person 'ann'"):
            people.add("ann", "viewer")
        people.remove("ann")
        assert people.holder_of(token) is None
        with pytest.raises(UnknownNameError, match="no person 'ann'"):
            people.remove("ann")
        with pytest.raises(UsageError, match="a person's name"):
            people.add("a b", "viewer")


def test_a_session_is_opaque_and_ends_at_sign_out_and_with_the_person(store_url):
    with open_store(store_url) as store:
        people = People(store)
        token = people.add("ann", "viewer")
        ann = people.holder_of(token)
        first, second, third = (people.sign_in(ann) for _ in range(3))
        assert len({first, second, third}) == 3
        assert people.in_session(first) == ann
        # Neither stands for the other: a stolen cookie is no token, a token no cookie.
        assert people.in_session(token) is None
        assert people.holder_of(first) is None
        assert first not in rows_of(store, "sessions")
        people.sign_out(first)
        assert (people.in_session(first), people.in_session(second)) == (None, ann)
        assert people.sign_out_everywhere("ann") == 2
        assert people.in_session(second) is None
        assert people.holder_of(token) == ann
        last = people.sign_in(ann)
        people.remove("ann")
        people.add("ann", "admin")
        assert people.in_session(last) is None, "another person of the same name"
        with pytest.raises(UnknownNameError, match="no person 'bob'"):
            people.sign_out_everywhere("bob")


def test_a_session_goes_on_while_it_is_used_and_ends_at_last(store_url, monkeypatch):
    clock = [1_000_000_000.0]
    monkeypatch.setattr("answerkey.store.people.time.time", lambda: clock[0])
    day = 24 * 3600
    with open_store(store_url) as store:
        people = People(store)
        people.add("ann", "viewer")
        (ann,) = people.all()
        used, idle = people.sign_in(ann), people.sign_in(ann)
        for _ in range(int(SESSION_SECONDS / day / 5) - 1):
            clock[0] += 5 * day
            assert people.in_session(used) == ann
        assert people.in_session(idle) is None
        clock[0] += 5 * day + 1
        assert people.in_session(used) is None
        # Those that ended are swept away.
        people.sign_in(ann)
        with store.database.reading() as connection:
            assert connection.value("SELECT COUNT(*) FROM sessions") == 1


def test_nobody_is_signed_in_to_a_copy(store_url, new_store_url):
    with open_store(store_url) as store, open_store(new_store_url) as copy:
        token = People(store).add("ann", "viewer")
        session = People(store).sign_in(People(store).holder_of(token))
        copy_store(store, copy)
        assert People(copy).holder_of(token) is not None
        assert People(copy).in_session(session) is None


def test_a_sites_key_is_no_persons_token(store_url):
    with open_store(store_url) as store:
        key = Sites(store).add("shop")
        assert Sites(store).holder_of(key).name == "shop"
        assert People(store).holder_of(key) is None
        assert Sites(store).holder_of(People(store).add("shop", "viewer")) is None
        assert key not in rows_of(store, "sites")
        with pytest.raises(UsageError, match="already a site 'shop'"):
            Sites(store).add("shop")
        Sites(store).remove("shop")
        assert Sites(store).holder_of(key) is None
        with pytest.raises(UnknownNameError, match="no site 'shop'"):
            Sites(store).remove("shop")
