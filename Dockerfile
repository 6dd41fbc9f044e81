# answerkey with its dashboard and PostgreSQL stores: docker build -t answerkey . && docker run --rm answerkey run
FROM python:3.12-slim AS build
WORKDIR /source
RUN pip install --no-cache-dir "uv>=0.5"
COPY . .
RUN uv venv /opt/answerkey \
    && uv pip install --python /opt/answerkey/bin/python --constraints requirements.lock ".[server,postgres]" \
    && /opt/answerkey/bin/python -m compileall -q /opt/answerkey

FROM python:3.12-slim
COPY --from=build /opt/answerkey /opt/answerkey
ENV PATH=/opt/answerkey/bin:$PATH
RUN useradd --create-home --uid 1000 answerkey
# Golden sets, answerkey.toml and, unless ANSWERKEY_STORE names another store, the runs.
WORKDIR /work
RUN chown answerkey /work
USER answerkey
ENTRYPOINT ["answerkey"]
CMD ["--help"]
