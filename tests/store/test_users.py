import pytest

from answerkey.errors import UnknownNameError, UsageError
from answerkey.store import open_store
from answerkey.store.feedback import SESSION_SECONDS, Users
from answerkey.store.maintenance import copy_store


def rows_of(store, table):
    with store.database.reading() as connection:
        return str(connection.run(f"SELECT * FROM {table}").fetchall())


def test_a_persons_token_works_until_they_are_removed_and_only_its_digest_is_kept(store_url):
    with open_store(store_url) as store:
        users = Users(store)
        token = users.add("ann", "reviewer")
        assert users.find_by_secret(token).role == "reviewer"
        assert users.find_by_secret(token + "x") is None
        assert users.find_by_secret("") is None
        assert token not in rows_of(store, "users")
        with pytest.raises(UsageError, match="already a user 'ann'"):
            users.add("ann", "viewer")
        users.remove("ann")
        assert users.find_by_secret(token) is None
        with pytest.raises(UnknownNameError, match="no user 'ann'"):
            users.remove("ann")
        with pytest.raises(UsageError, match="user name"):
            users.add("a b", "viewer")


def test_a_session_is_opaque_and_ends_at_sign_out_and_with_the_person(store_url):
    with open_store(store_url) as store:
        users = Users(store)
        token = users.add("ann", "viewer")
        ann = users.find_by_secret(token)
        first, second, third = (users.sign_in(ann) for _ in range(3))
        assert len({first, second, third}) == 3
        assert users.find_by_session(first) == ann
        # Neither stands for the other: a stolen cookie is no token, a token no cookie.
        assert users.find_by_session(token) is None
        assert users.find_by_secret(first) is None
        assert first not in rows_of(store, "sessions")
        users.sign_out(first)
        assert (users.find_by_session(first), users.find_by_session(second)) == (None, ann)
        assert users.sign_out_everywhere("ann") == 2
        assert users.find_by_session(second) is None
        assert users.find_by_secret(token) == ann
        last = users.sign_in(ann)
        users.remove("ann")
        users.add("ann", "admin")
        assert users.find_by_session(last) is None, "another person of the same name"
        with pytest.raises(UnknownNameError, match="no user 'bob'"):
            users.sign_out_everywhere("bob")


def test_a_session_goes_on_while_it_is_used_and_ends_at_last(store_url, monkeypatch):
    clock = [1_000_000_000.0]
    monkeypatch.setattr("answerkey.store.feedback.time.time", lambda: clock[0])
    day = 24 * 3600
    with open_store(store_url) as store:
        users = Users(store)
        users.add("ann", "viewer")
        (ann,) = users.all()
        used, idle = users.sign_in(ann), users.sign_in(ann)
        for _ in range(int(SESSION_SECONDS / day / 5) - 1):
            clock[0] += 5 * day
            assert users.find_by_session(used) == ann
        assert users.find_by_session(idle) is None
        clock[0] += 5 * day + 1
        assert users.find_by_session(used) is None
        # Those that ended are swept away.
        users.sign_in(ann)
        with store.database.reading() as connection:
            assert connection.value("SELECT COUNT(*) FROM sessions") == 1


def test_nobody_is_signed_in_to_a_copy(store_url, new_store_url):
    with open_store(store_url) as store, open_store(new_store_url) as copy:
        token = Users(store).add("ann", "viewer")
        session = Users(store).sign_in(Users(store).find_by_secret(token))
        copy_store(store, copy)
        assert Users(copy).find_by_secret(token) is not None
        assert Users(copy).find_by_session(session) is None


def test_a_site_has_a_key_and_cannot_share_its_name(store_url):
    with open_store(store_url) as store:
        key = Users(store).add("shop", "site")
        site = Users(store).find_by_secret(key)
        assert (site.name, site.role, site.sender) == ("shop", "site", "site:shop")
        assert key not in rows_of(store, "users")
        with pytest.raises(UsageError, match="already a user 'shop'"):
            Users(store).add("shop", "site")
        Users(store).remove("shop")
        assert Users(store).find_by_secret(key) is None
        with pytest.raises(UnknownNameError, match="no user 'shop'"):
            Users(store).remove("shop")
