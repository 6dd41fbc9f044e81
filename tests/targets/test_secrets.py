import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerkey.config import Secrets
from answerkey.errors import ConfigError
from answerkey.model.reply import Failure, Reply, Source, ToolCall

ENVIRONMENT = {"KEY": "k3y/with+signs", "LONGER": "k3y/with+signs-and-more", "SHORT": "ab", "NAME": "acme"}


def test_references_are_expanded_wherever_they_stand() -> None:
    secrets = Secrets(ENVIRONMENT)
    given = {"a": "Bearer ${KEY}", "b": [1, "${NAME}/${SHORT}"], "c": "${OTHER:-plain}", "d": "$KEY {KEY}"}
    assert secrets.expand(given, "x") == {
        "a": "Bearer k3y/with+signs",
        "b": [1, "acme/ab"],
        "c": "plain",
        "d": "$KEY {KEY}",
    }


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(
        ConfigError, match=r"target bot: headers needs the environment variable MISSING.*export MISSING="
    ):
        Secrets({}).expand("${MISSING}", "target bot: headers")


def test_values_are_taken_out_of_messages_in_every_form() -> None:
    secrets = Secrets(ENVIRONMENT)
    secrets.expand("${KEY}${LONGER}", "x")
    said = "k3y/with+signs-and-more, k3y/with+signs, k3y%2Fwith%2Bsigns, k3y%2fwith%2bsigns, k3y/with%2Bsigns"
    assert secrets.redact(said) == "${LONGER}, ${KEY}, ${KEY}, ${KEY}, ${KEY}"


def test_values_of_four_characters_are_masked_and_shorter_ones_are_no_secrets() -> None:
    secrets = Secrets(ENVIRONMENT)
    secrets.expand("${NAME}${SHORT}", "body")
    assert secrets.redact("acme, ab, cab") == "${NAME}, ab, cab"


@given(st.text(min_size=4, max_size=40), st.text(max_size=6), st.text(max_size=6), st.data())
def test_a_secret_is_found_however_it_is_written(
    value: str, before: str, after: str, data: st.DataObject
) -> None:
    value = value.encode("utf-8", "replace").decode()
    secrets = Secrets({"KEY": value})
    secrets.expand("${KEY}", "headers")
    write = data.draw(
        st.sampled_from(
            [
                str,
                quote,
                quote_plus,
                html.escape,
                lambda text: json.dumps(text)[1:-1],
                lambda text: base64.b64encode(text.encode()).decode(),
                lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
            ]
        )
    )
    written = write(value)
    assert "${KEY}" in secrets.redact(before + written + after)


@given(st.text("abcdefgh-_/+", min_size=8), st.binary(max_size=20), st.binary(max_size=20))
def test_a_secret_inside_longer_base64_is_found(value: str, before: bytes, after: bytes) -> None:
    secrets = Secrets({"KEY": value})
    secrets.expand("${KEY}", "headers")
    written = base64.b64encode(before + value.encode() + after).decode()
    redacted = secrets.redact(written)
    assert "${KEY}" in redacted


def test_a_reply_is_masked_everywhere_and_its_shape_stays() -> None:
    secrets = Secrets({"KEY": "text", "OTHER": "tool-secret"})
    secrets.expand("${KEY} ${OTHER}", "body")
    reply = Reply(
        text="the text",
        tool_calls=(
            ToolCall(
                name="look", arguments={"key": "tool-secret"}, result=[{"tool-secret": ["tool-secret"]}]
            ),
        ),
        sources=(Source(id="tool-secret", text="a text", metadata={"token": "tool-secret"}),),
        failure=Failure("http", "HTTP 500: tool-secret"),
        response_id="tool-secret",
    )
    kept = secrets.redact_reply(reply)
    assert kept.text == "the ${KEY}"
    assert kept.tool_calls[0].arguments == {"key": "${OTHER}"}
    assert kept.tool_calls[0].result == [{"${OTHER}": ["${OTHER}"]}]
    assert kept.sources[0] == Source(id="${OTHER}", text="a ${KEY}", metadata={"token": "${OTHER}"})
    assert kept.failure == Failure("http", "HTTP 500: ${OTHER}")
    assert kept.response_id == "${OTHER}"
    plain = Reply(text="nothing to hide")
    assert secrets.redact_reply(plain) == plain


def test_a_message_that_was_cut_inside_a_secret_shows_nothing_of_it() -> None:
    secrets = Secrets({"KEY": "sk-0123456789"})
    secrets.expand("${KEY}", "headers")
    for length in range(1, 13):
        kept = secrets.redact_reply(Reply(failure=Failure("http", "said sk-0123456789"[: 5 + length] + "…")))
        assert kept.failure == Failure("http", "said …")
