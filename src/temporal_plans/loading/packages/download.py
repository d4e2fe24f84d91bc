"""Archives of packages from the web."""

import time
import urllib.error
import urllib.request
from http.client import HTTPException

from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.packages.limits import SIZE_LIMIT, too_large

_ANSWER_TIMEOUT = 10.0
"""Seconds without any byte."""

DOWNLOAD_TIMEOUT = 60.0
"""Seconds for all of it."""

_PART = 64 * 1024


def is_address(source: str) -> bool:
    """Return whether a source of packages is an address in the web, not a path."""
    return source.startswith(("http://", "https://"))


def download(address: str, *, timeout: float = DOWNLOAD_TIMEOUT) -> bytes:
    """Return what an http or https address answers, at most 10 MB. Raises SpecError."""
    try:
        return _received(address, timeout)
    except (OSError, HTTPException, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        problem = Reason(field="", problem=f"can't be downloaded: {_detail(error)}")
        raise SpecError([problem], source=address) from error


def _received(address: str, timeout: float) -> bytes:
    end = time.monotonic() + timeout
    received = bytearray()
    with _opener().open(address, timeout=min(timeout, _ANSWER_TIMEOUT)) as answer:
        while part := answer.read1(_PART):
            received += part
            if len(received) > SIZE_LIMIT:
                raise SpecError([too_large("")], source=address)
            if time.monotonic() > end:
                raise TimeoutError(f"takes longer than {timeout:g} s")
    return bytes(received)


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener for http and https only: a redirect leads to neither a file nor ftp."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _detail(error: BaseException) -> str:
    answered = isinstance(error, urllib.error.HTTPError)
    reason = error.reason if isinstance(error, urllib.error.URLError) and not answered else error
    return " ".join(str(reason).split()) or type(error).__name__
