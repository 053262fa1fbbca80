"""Images of data sets: from where they may come, and what they may be."""

import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from socratic_bench.benchmarks.images import MOST_BYTES, ImageError, ImagePlaces, read_image
from socratic_bench.catalogue.models import Capabilities, takes_images
from socratic_bench.catalogue.tokens import IMAGE_TOKENS, MOST_IMAGE_TOKENS, most_input_tokens
from socratic_bench.generation import GenerateConfig
from socratic_bench.journal.log import request_sha256
from socratic_bench.models.bedrock.request import converse_arguments, request_parts
from socratic_bench.models.chat_format import chat_fields
from socratic_bench.types import Image, Message, Request, Text

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
WEBP = b"RIFF\x10\0\0\0WEBPVP8 " + bytes(20)


class Handler(BaseHTTPRequestHandler):
    def __init__(self, pages: Mapping[str, bytes], hosts: list[str], *given: object) -> None:
        self.pages, self.hosts = pages, hosts
        super().__init__(*given)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.hosts.append(self.headers["Host"])
        is_there = self.path in self.pages
        self.send_response(302 if self.path == "/moved" else 200 if is_there else 404)
        if self.path == "/moved":
            self.send_header("Location", "/cat.png")
        self.end_headers()
        self.wfile.write(self.pages.get(self.path, b""))

    def log_message(self, *_: object) -> None:
        """Not to stderr."""


@contextmanager
def serving(pages: Mapping[str, bytes]) -> Iterator[tuple[int, list[str]]]:
    hosts: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, pages, hosts))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server.server_port, hosts
    finally:
        server.shutdown()
        server.server_close()


def local(host: str, port: int) -> list[str]:
    """Every host is this machine."""
    return ["127.0.0.1"]


def test_a_file_is_of_the_format_of_its_content(tmp_path):
    (tmp_path / "cat.jpg").write_bytes(PNG)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "dog").write_bytes(WEBP)
    places = ImagePlaces((str(tmp_path),))

    assert read_image("cat.jpg", places).format == "png"
    assert read_image(str(tmp_path / "sub/dog"), places).format == "webp"


def test_base64_is_an_image_with_and_without_its_head():
    text = b64encode(PNG * 6).decode()

    assert read_image(text, ImagePlaces()).data == PNG * 6
    wrapped = "\n".join(text[start : start + 75] for start in range(0, len(text), 75))
    assert read_image(f"{wrapped}\n", ImagePlaces()).data == PNG * 6
    assert read_image(f"data:image/png;base64,{text}", ImagePlaces()).format == "png"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"BM" + bytes(50), "BMP; models take PNG, JPEG, GIF and WebP"),
        (b" <svg xmlns='x'/>", "SVG"),
        (b"hello", "no known format"),
        (PNG + bytes(MOST_BYTES), f"more than {MOST_BYTES} bytes"),
    ],
)
def test_other_formats_and_sizes_are_refused_by_name(tmp_path, content, words):
    (tmp_path / "image").write_bytes(content)

    with pytest.raises(ImageError, match=words):
        read_image("image", ImagePlaces((str(tmp_path),)))


def test_no_path_leads_out_of_the_allowed_folders(tmp_path):
    (tmp_path / "secret.png").write_bytes(PNG)
    data = tmp_path / "data"
    data.mkdir()
    (data / "link.png").symlink_to("../secret.png")
    (data / "pipe.png").mkdir()

    for source in ("../secret.png", "link.png", str(tmp_path / "secret.png")):
        with pytest.raises(ImageError, match="outside the data set's folder"):
            read_image(source, ImagePlaces((str(data),)))
    assert read_image("link.png", ImagePlaces((str(data), str(tmp_path)))).format == "png"
    for source in ("pipe.png", "missing.png", "nul\0.png"):
        with pytest.raises(ImageError):
            read_image(source, ImagePlaces((str(data),)))


def test_an_address_is_called_once_and_by_its_own_name():
    with serving({"/cat.png": PNG}) as (port, hosts):
        places = ImagePlaces(hosts=("example.com", "127.0.0.1"))
        for _ in range(3):
            image = read_image(f"http://example.com:{port}/cat.png", places, local)

    assert image.data == PNG
    assert hosts == [f"example.com:{port}"]


@pytest.mark.parametrize(
    ("hosts", "path", "words"),
    [
        ((), "/cat.png", "example.com is not allowed"),
        (("example.com",), "/cat.png", "private address 127.0.0.1"),
        (("example.com", "10.0.0.0/8"), "/cat.png", "private address 127.0.0.1"),
        (("example.com", "127.0.0.0/8"), "/moved", "302, and redirects are not followed"),
        (("example.com", "127.0.0.0/8"), "/no.png", "answers with 404"),
        (("example.com", "127.0.0.0/8"), "/page", "HTML"),
        (("example.com", "127.0.0.0/8"), "/large", f"more than {MOST_BYTES} bytes"),
    ],
)
def test_addresses_that_are_not_allowed_or_give_no_image_are_named(hosts, path, words):
    pages = {"/cat.png": PNG, "/page": b"<html>", "/large": PNG + bytes(MOST_BYTES)}
    with serving(pages) as (port, asked), pytest.raises(ImageError, match=words):
        read_image(f"http://example.com:{port}{path}", ImagePlaces(hosts=hosts), local)
    assert len(asked) == (0 if "allowed" in words or "private" in words else 1)


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/latest", "http://[::1]/x.png", "http://localhost/x.png"]
)
def test_no_data_set_reaches_the_machines_own_services(url):
    with pytest.raises(ImageError, match="is not allowed"):
        read_image(url, ImagePlaces(hosts=("example.com",)))


@pytest.mark.parametrize(
    "address",
    [
        *("::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "::127.0.0.1"),
        *("224.0.0.1", "ff0e::1", "64:ff9b::e000:1", "fec0::1"),
    ],
)
def test_a_private_address_in_another_form_is_not_called(address):
    with pytest.raises(ImageError, match=f"private address {address}"):
        read_image(
            "http://example.com:9/x.png",
            ImagePlaces(hosts=("example.com",)),
            lambda _host, _port: [address],
        )


def test_an_image_that_comes_in_drops_is_left_after_its_time(monkeypatch):
    moments = iter((0.0, 1.0, 21.0))
    monkeypatch.setattr("socratic_bench.benchmarks.images.monotonic", lambda: next(moments))
    pages = {"/slow.png": PNG + bytes(300_000)}
    with serving(pages) as (port, _), pytest.raises(ImageError, match="longer than 20 s"):
        read_image(f"http://127.0.0.1:{port}/slow.png", ImagePlaces(hosts=("127.0.0.1",)))


def test_a_user_in_an_address_is_refused():
    with pytest.raises(ImageError, match="without user and password"):
        read_image("http://example.com@127.0.0.1/x.png", ImagePlaces(hosts=("example.com",)))


def test_images_are_a_part_of_messages_in_the_shape_of_each_provider():
    message = Message("user", (Text("What is it?"), Image(format="png", data=PNG)))
    request = Request(messages=(message,), config=GenerateConfig(max_tokens=10))

    converse = converse_arguments("amazon.nova-pro-v1:0", request, Capabilities())
    chat = chat_fields("gpt", request, frozenset(), stream=False)

    assert converse["messages"][0]["content"][1] == {
        "image": {"format": "png", "source": {"bytes": PNG}}
    }
    url = chat["messages"][0]["content"][1]["image_url"]["url"]
    assert b64decode(url.partition(",")[2]) == PNG
    assert sum(part.tokens for part in request_parts(converse)) > IMAGE_TOKENS
    assert most_input_tokens(request) > MOST_IMAGE_TOKENS


def test_another_image_makes_another_request():
    def digest(data: bytes) -> str:
        message = Message("user", (Image(format="png", data=data),))
        return request_sha256(Request(messages=(message,), config=GenerateConfig(max_tokens=10)))

    assert digest(PNG) == digest(PNG)
    assert digest(PNG) != digest(PNG + b"\0")


@pytest.mark.parametrize(
    ("model", "sees"),
    [
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", True),
        ("us.amazon.nova-micro-v1:0", False),
        ("us.amazon.nova-pro-v1:0", True),
        ("meta.llama3-1-70b-instruct-v1:0", False),
        ("us.meta.llama4-scout-17b-instruct-v1:0", True),
        ("openai/gpt-4o", True),
    ],
)
def test_it_is_known_which_models_see(model, sees):
    assert takes_images(model) == sees
