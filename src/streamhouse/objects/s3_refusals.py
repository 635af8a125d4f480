"""What S3's refusals mean, in our words and with what to do about them: from the text of an error to a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,60})</Code>")
_MESSAGE = re.compile(r"<Message>([^<]{1,300})</Message>")
_REGION = re.compile(r"<Region>([A-Za-z0-9-]{1,40})</Region>")
_STATUS = re.compile(r"status code: ([1-5][0-9]{2})\b")
_MOST_CHARACTERS = 300
_KEYS = "s3_access_key_id and s3_secret_access_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Place:
    """What was asked for; `endpoint` is empty for AWS, `has_keys` without keys that were given."""

    bucket: str
    endpoint: str
    region: str
    has_keys: bool

    @property
    def server(self) -> str:
        return self.endpoint or "AWS"


def explain(said: str, place: S3Place) -> str | None:
    """What is wrong and what to do, from all that an error says; None for what is not known to need anything done."""
    code = _CODE.search(said)
    if code is not None and code[1] in _BY_CODE:
        return _BY_CODE[code[1]](said, place)
    for mark, explanation in _BY_TEXT:
        if mark.search(said):
            return explanation(said, place)
    status = _STATUS.search(said)
    return _BY_CODE["AccessDenied"](said, place) if status is not None and status[1] in ("401", "403") else None


def brief(said: str) -> str:
    """S3's own words, without the document that they come in and what the client's own structures look like."""
    code, message = _CODE.search(said), _MESSAGE.search(said)
    if code is None:
        return (said.splitlines() or [""])[0][:_MOST_CHARACTERS]
    return f"{code[1]}: {message[1]}" if message else code[1]


def _refused_keys(why: str) -> Callable[[str, S3Place], str]:
    return lambda said, place: f"S3 refuses these keys: {why}"


def _denied(said: str, place: S3Place) -> str:
    if not place.has_keys:
        # Nothing is ever asked unsigned: the keys were those of a role that the machine has been given.
        return f"S3 does not allow this machine's role to do this in bucket {place.bucket!r}: allow it, or set {_KEYS}"
    return (
        f"S3 does not allow these keys to do this in bucket {place.bucket!r}: check their policy, and the bucket's name"
    )


def _no_bucket(said: str, place: S3Place) -> str:
    return f"there is no bucket {place.bucket!r} at {place.server}: make it, or correct the setting objects"


def _no_keys(said: str, place: S3Place) -> str:
    return f"there are no keys for S3: set {_KEYS}, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


def _other_region(said: str, place: S3Place) -> str:
    region = _REGION.search(said)
    right = f"region {region[1]!r}" if region else "another region"
    return f"bucket {place.bucket!r} is in {right} and not in {place.region!r}: correct s3_region"


def _clock(said: str, place: S3Place) -> str:
    return "S3's clock and this machine's are too far apart: set this machine's"


def _speaks_no_tls(said: str, place: S3Place) -> str:
    return f"{place.server} does not speak TLS: should s3_endpoint begin with http://?"


def _speaks_tls(said: str, place: S3Place) -> str:
    return f"{place.server} speaks TLS: should s3_endpoint begin with https://?"


def _untrusted(said: str, place: S3Place) -> str:
    return (
        f"{place.server} shows a certificate that this machine does not trust: install its authority's, or correct it"
    )


def _nobody(said: str, place: S3Place) -> str:
    return f"nobody answers at {place.server}: is S3 running there, and is s3_endpoint right?"


def _no_host(said: str, place: S3Place) -> str:
    host = urlsplit(place.endpoint).hostname or "of AWS"
    return f"there is no host {host!r}: is s3_endpoint right?"


_BY_CODE: Mapping[str, Callable[[str, S3Place], str]] = MappingProxyType(
    {
        "AccessDenied": _denied,
        "AccountProblem": _denied,
        "AllAccessDisabled": _denied,
        "AuthorizationHeaderMalformed": _other_region,
        "ExpiredToken": _refused_keys("their session token has expired; get new ones"),
        "IllegalLocationConstraintException": _other_region,
        "InvalidAccessKeyId": _refused_keys("it does not know the access key id; check s3_access_key_id"),
        "InvalidBucketName": _no_bucket,
        "InvalidToken": _refused_keys("their session token is not valid; check s3_session_token"),
        "NoSuchBucket": _no_bucket,
        "PermanentRedirect": _other_region,
        "RequestTimeTooSkewed": _clock,
        "SignatureDoesNotMatch": _refused_keys(
            "the secret does not belong to the access key id; check s3_secret_access_key"
        ),
        "TokenRefreshRequired": _refused_keys("their session token has expired; get new ones"),
    }
)
# In the order in which they are looked for: the first ones are also kinds of the last.
_BY_TEXT = tuple(
    (re.compile(mark, re.IGNORECASE), explanation)
    for mark, explanation in (
        (r"169\.254\.169\.254|169\.254\.170\.2|credential provider|no credentials", _no_keys),
        (r"incorrectly configured region|received redirect without location", _other_region),
        (r"http request to an https server|plain http request was sent to https port", _speaks_tls),
        (r"InvalidContentType|corrupt message|wrong version number", _speaks_no_tls),
        (r"invalid peer certificate|UnknownIssuer|certificate verify failed|NotValidForName|self.signed", _untrusted),
        (r"failed to lookup address|dns error|name or service not known", _no_host),
        (r"connection refused|kind: Connect\b", _nobody),
    )
)
