"""Images of a data set: files beside it, addresses on the web, or base64; read once, by content.

A data set is somebody else's text. So a file lies in the data set's folder or in one that the user
names, an address has a host that the user names, and a private address is called only if the user
names it, too. Redirects are not followed; the address that was checked is the one called.
"""

import os
import socket
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

from msgspec import Struct
from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, Timeout
from urllib3.exceptions import HTTPError

from socratic_bench.settings import read_bounded
from socratic_bench.types import Image, ImageFormat

MOST_BYTES = 3_750_000  # that Converse takes of one image
TIMEOUT_S = 20.0
# IPv6 addresses that end in the IPv4 address they stand for: of translators, and of old form.
_WITH_IPV4 = (ip_network("64:ff9b::/96"), ip_network("::/96"))
_BEGINNINGS: Sequence[tuple[bytes, ImageFormat]] = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
)
_OTHER_FORMATS = (
    *((b"BM", "BMP"), (b"II*\0", "TIFF"), (b"MM\0*", "TIFF"), (b"%PDF", "PDF")),
    *((b"<svg", "SVG"), (b"<?xml", "SVG or other XML"), (b"<!DOCTYPE", "HTML"), (b"<html", "HTML")),
)

Resolve = Callable[[str, int], Sequence[str]]


class ImageError(ValueError):
    """An image that cannot be used; the text says why."""


class ImagePlaces(Struct, frozen=True):
    """Where images may come from.

    Attributes:
        folders: files in and below these; a relative path is looked for from the first on.
        hosts: names of hosts, and addresses or networks (`10.0.0.0/8`). A host is called at a
            public address, or at a private one that is in these, too.
    """

    folders: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host. Raises `OSError`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@lru_cache(maxsize=4096)
def read_image(source: str, places: ImagePlaces, resolve_host: Resolve = resolve) -> Image:
    """The image that a data set names: a path, an http(s) address, a data URL, or base64.

    Raises `ImageError`. It is read once in a process, whatever runs ask for it.
    """
    if source.startswith(("http://", "https://")):
        data = _fetch(source, places.hosts, resolve_host)
    elif source.startswith("data:"):
        data = _decode(source.partition(",")[2])
    else:
        data = _read_file(source, places.folders)
    return Image(format=_format_of(data), data=data)


def _read_file(source: str, folders: Sequence[str]) -> bytes:
    """A file of that path, in one of the folders; else the text itself as base64."""
    roots = [Path(os.path.realpath(folder)) for folder in folders]
    paths = [Path(os.path.realpath(root / source)) for root in roots] if "\0" not in source else []
    try:
        path = next((path for path in paths if path.exists()), None)
    except OSError:  # too long for a name
        path = None
    if path is None:
        text = "".join(source.split())
        if len(text) % 4 == 0 and len(text) > os.pathconf("/", "PC_NAME_MAX"):
            return _decode(text)
        where = " or ".join(map(str, folders)) or "any allowed folder"
        raise ImageError(f"there is no file {source[:200]!r} in {where}")
    if not any(path.is_relative_to(root) for root in roots):
        raise ImageError(
            f"{source!r} lies outside the data set's folder: allow its own by {{image_folders}}"
        )
    try:
        return read_bounded(path, bound=MOST_BYTES)
    except OSError as error:
        raise ImageError(f"{source!r} cannot be read: {error.strerror}") from error


def _decode(text: str) -> bytes:
    try:
        data = b64decode("".join(text.split()), validate=True)
    except ValueError as error:
        raise ImageError("it is not base64") from error
    if len(data) > MOST_BYTES:
        raise ImageError(f"it has more than {MOST_BYTES} bytes")
    return data


def _format_of(data: bytes) -> ImageFormat:
    """The format, by the first bytes."""
    for beginning, name in _BEGINNINGS:
        if data.startswith(beginning):
            return name
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "webp"
    other = next((name for start, name in _OTHER_FORMATS if data.lstrip().startswith(start)), None)
    raise ImageError(
        f"its content is {other or 'of no known format'}; models take PNG, JPEG, GIF and WebP"
    )


def _fetch(url: str, hosts: Sequence[str], resolve_host: Resolve) -> bytes:
    """The content at an address whose host is allowed, from the very address that was checked."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise ImageError(f"{url!r} is not a valid address") from error
    host = (parts.hostname or "").rstrip(".")
    if not host or parts.username or parts.password:
        raise ImageError(
            f"{url!r} is not a valid address of a host alone, without user and password"
        )
    if not _is_named(host, hosts):
        raise ImageError(f"{host} is not allowed: allow it by {{image_hosts}} {host}")
    try:
        addresses = resolve_host(host, port)
    except OSError as error:
        raise ImageError(f"{host} has no address: {error.strerror or error}") from error
    address = next((each for each in addresses if _may_be_called(each, hosts)), None)
    if address is None:
        raise ImageError(
            f"{host} is at the private address {addresses[0]}: allow that by {{image_hosts}}, too"
        )
    target = parts.path or "/"
    return _get(
        f"{target}?{parts.query}" if parts.query else target,
        is_tls=parts.scheme == "https",
        host=host,
        address=address,
        port=port,
    )


def _get(target: str, *, is_tls: bool, host: str, address: str, port: int) -> bytes:
    timeout = Timeout(connect=TIMEOUT_S, read=TIMEOUT_S)
    pool: HTTPConnectionPool
    if is_tls:
        pool = HTTPSConnectionPool(
            address, port, timeout=timeout, server_hostname=host, assert_hostname=host
        )
    else:
        pool = HTTPConnectionPool(address, port, timeout=timeout)
    is_usual = port == (443 if is_tls else 80)
    named = f"[{host}]" if ":" in host else host
    headers = {"Host": named if is_usual else f"{named}:{port}", "Accept": "image/*"}
    with pool:
        try:
            answer = pool.request(
                "GET", target, headers=headers, redirect=False, retries=False, preload_content=False
            )
            with answer:
                if answer.status != 200:  # noqa: PLR2004
                    is_moved = 300 <= answer.status < 400  # noqa: PLR2004
                    more = ", and redirects are not followed" if is_moved else ""
                    raise ImageError(f"{host} answers with {answer.status}{more}")
                data = b"".join(_parts(answer, host))
        except HTTPError as error:
            raise ImageError(f"{host} gave no image: {type(error).__name__}") from error
    if len(data) > MOST_BYTES:
        raise ImageError(f"it has more than {MOST_BYTES} bytes")
    return data


def _parts(answer: BaseHTTPResponse, host: str) -> Iterator[bytes]:
    """What an answer has, up to a byte too many, within a time for all of it."""
    end_s, n_left = monotonic() + TIMEOUT_S, MOST_BYTES + 1
    while n_left > 0 and (part := answer.read1(n_left)):
        if monotonic() > end_s:
            raise ImageError(f"{host} took longer than {TIMEOUT_S:g} s")
        n_left -= len(part)
        yield part


def _is_named(host: str, hosts: Sequence[str]) -> bool:
    """Whether the user allows a host, by its name or, of an address, by a network."""
    return host.casefold() in {name.casefold() for name in hosts} or _is_in(host, hosts)


def _may_be_called(address: str, hosts: Sequence[str]) -> bool:
    return _is_public(ip_address(address.partition("%")[0])) or _is_in(address, hosts)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    """Also by the IPv4 address that an IPv6 address stands for."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if any(address in network for network in _WITH_IPV4):
            inner = IPv4Address(address.packed[-4:])
        if address.is_site_local or (inner and not _is_public(inner)):
            return False
    return address.is_global and not address.is_multicast


def _is_in(address: str, networks: Sequence[str]) -> bool:
    try:
        number = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    for network in networks:
        try:
            if number in ip_network(network, strict=False):
                return True
        except ValueError:  # a name
            continue
    return False
