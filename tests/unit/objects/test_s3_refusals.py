"""S3's refusals in our words, from the texts that S3 servers and the client have for them."""

from __future__ import annotations

import pytest

from streamhouse.objects.s3_refusals import S3Place, brief, explain

PLACE = S3Place(bucket="streams", endpoint="https://s3.example.com", region="us-east-1", has_keys=True)


def answer(status: int, code: str, message: str = "said by S3", more: str = "") -> str:
    """As the client tells of it, with its own structures behind."""
    document = f'<?xml version="1.0"?>\n<Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>'
    return f"Generic S3 error: Error performing GET … - status code: {status} Reason: {document}\n\nDebug source:\n…"


@pytest.mark.parametrize(
    ("said", "explained"),
    [
        (answer(403, "InvalidAccessKeyId"), "S3 refuses these keys: it does not know the access key id"),
        (answer(403, "SignatureDoesNotMatch"), "S3 refuses these keys: the secret does not belong"),
        (answer(400, "ExpiredToken"), "S3 refuses these keys: their session token has expired"),
        (answer(403, "RequestTimeTooSkewed"), "S3's clock and this machine's are too far apart"),
        (answer(403, "AccessDenied"), "S3 does not allow these keys to do this in bucket 'streams'"),
        ("Error performing HEAD https://… - status code: 403 Forbidden: \n", "S3 does not allow these keys"),
        (answer(404, "NoSuchBucket"), "there is no bucket 'streams' at https://s3.example.com: make it"),
        (
            answer(400, "AuthorizationHeaderMalformed", more="<Region>eu-central-1</Region>"),
            "bucket 'streams' is in region 'eu-central-1' and not in 'us-east-1': correct s3_region",
        ),
        (answer(301, "PermanentRedirect"), "bucket 'streams' is in another region and not in 'us-east-1'"),
        (
            "Received redirect without LOCATION, this normally indicates an incorrectly configured region",
            "bucket 'streams'",
        ),
        ("400 Bad Request: Client sent an HTTP request to an HTTPS server.", "https://s3.example.com speaks TLS"),
        (
            "kind: Connect, source: Custom { error: InvalidMessage(InvalidContentType) }",
            "should s3_endpoint begin with http",
        ),
        (
            "kind: Connect, source: invalid peer certificate: UnknownIssuer",
            "a certificate that this machine does not trust",
        ),
        ("kind: Connect, source: dns error: failed to lookup address information", "there is no host 's3.example.com'"),
        ("kind: Connect, source: Connection refused (os error 111)", "nobody answers at https://s3.example.com"),
        (
            "Error performing PUT http://169.254.169.254/latest/api/token in 1s",
            "there are no keys for S3: set s3_access",
        ),
    ],
)
def test_what_an_operator_can_mend_is_explained(said: str, explained: str) -> None:
    found = explain(said, PLACE)

    assert found is not None
    assert explained in found
    assert "\n" not in found


@pytest.mark.parametrize("said", [answer(503, "SlowDown"), answer(500, "InternalError"), "operation timed out", ""])
def test_what_passes_by_itself_is_not(said: str) -> None:
    assert explain(said, PLACE) is None


def test_a_role_of_the_machine_is_called_so_where_no_keys_were_given() -> None:
    role = S3Place(bucket="streams", endpoint="", region="us-east-1", has_keys=False)

    assert explain(answer(403, "AccessDenied"), role) == (
        "S3 does not allow this machine's role to do this in bucket 'streams': allow it, or set s3_access_key_id and"
        " s3_secret_access_key"
    )
    assert explain(answer(404, "NoSuchBucket"), role) == (
        "there is no bucket 'streams' at AWS: make it, or correct the setting objects"
    )


def test_what_s3_said_is_one_short_line() -> None:
    assert brief(answer(403, "AccessDenied", "Access Denied.")) == "AccessDenied: Access Denied."
    assert brief("first\nsecond") == "first"
    assert len(brief("x" * 10_000)) == 300
