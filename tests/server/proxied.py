"""A dashboard behind nginx with TLS, as a team deploys it, and a browser that knows its name."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from answerkey.config import Settings
from answerkey.store import open_store
from free_ports import free_port

from .serving import serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Debian keeps it off the path of those who are not root.
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
OPENSSL = shutil.which("openssl")

MARKS = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: apt-get install -y chromium"),
    pytest.mark.skipif(NGINX is None, reason="no nginx on this machine: apt-get install -y nginx"),
    pytest.mark.skipif(OPENSSL is None, reason="no openssl on this machine: apt-get install -y openssl"),
]

NAME = "dash.example.test"
CONFIGURATION = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl;
    server_name {name};
    ssl_certificate {folder}/dash.pem;
    ssl_certificate_key {folder}/dash.key;
    location / {{
      proxy_pass http://127.0.0.1:{behind};
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
    }}
  }}
}}
"""

# A busy machine may take its time over a page.
expect.set_options(timeout=120_000)


def make_certificate(folder: Path) -> None:
    command = [OPENSSL, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"]
    files = ["-keyout", str(folder / "dash.key"), "-out", str(folder / "dash.pem")]
    subprocess.run(
        [*command, "-addext", f"subjectAltName=DNS:{NAME}", *files], check=True, capture_output=True
    )


def wait_for(process: subprocess.Popen, port: int, folder: Path) -> None:
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            continue
        return
    raise AssertionError((folder / "error.log").read_text())


@contextmanager
def proxied(folder: Path, store: str, configured: Settings | None = None, **settings: Any) -> Iterator[str]:
    """The public address of a dashboard over this store."""
    make_certificate(folder)
    port = free_port()
    public = f"https://{NAME}:{port}"
    behind = {"public_url": public, "trust_proxy": ("127.0.0.1",), **settings}
    with serving(lambda: open_store(store), configured, store_url=store, **behind) as client:
        written = CONFIGURATION.format(folder=folder, port=port, name=NAME, behind=client.port)
        (folder / "nginx.conf").write_text(written)
        process = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")])
        try:
            wait_for(process, port, folder)
            yield public
        finally:
            process.terminate()
            process.wait()


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser that finds the proxy by its name."""
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
    rules = f"--host-resolver-rules=MAP {NAME} 127.0.0.1"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=[*flags, rules])
        yield chromium
        chromium.close()


def sign_in(page, public: str, token: str, path: str = "/") -> None:
    page.goto(public + path)
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(public + path)
