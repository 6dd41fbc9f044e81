"""Whatever has passed the boundary is accepted by both stores, and comes back as it was."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Failure, Reply
from answerkey.model.trial import Trial
from answerkey.scorers.grader import Grader
from answerkey.scorers.plan import make_grader
from answerkey.model.options import Options, Scoring
from answerkey.store import open_store
from answerkey.transcripts.admission import admit_reply
from answerkey.transcripts.reply_mapping import reply_from_object

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=12)
ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
REPLIES = st.fixed_dictionaries(
    {},
    optional={
        "answer": ANY_TEXT | ANY_VALUE,
        "id": ANY_TEXT,
        "conversation_id": ANY_TEXT,
        "trace_id": ANY_TEXT,
        "error": ANY_TEXT | ANY_VALUE,
        "tool_calls": st.lists(
            st.fixed_dictionaries({"name": ANY_TEXT}, optional={"arguments": ANY_VALUE, "result": ANY_VALUE}),
            max_size=2,
        ),
        "sources": st.lists(st.fixed_dictionaries({"id": ANY_TEXT, "text": ANY_TEXT}) | ANY_VALUE, max_size=2),
        "usage": ANY_VALUE,
        "latency_ms": ANY_VALUE,
    },
)
