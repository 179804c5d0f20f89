"""The kinds of problem that the service reports; each has a stable code and a page.

The type URI of a kind is ``/problems/<code>`` on the server itself.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorKind:
    """One kind of problem."""

    code: str
    status: int
    title: str
    explanation: str  # what to do about it
    retryable: bool = False

    @property
    def type(self) -> str:
        return f"/problems/{self.code}"


ERROR_KINDS: dict[str, ErrorKind] = {
    kind.code: kind
    for kind in (
        ErrorKind(
            code="invalid-problem",
            status=422,
            title="The document breaks rules",
            explanation="Every broken rule is listed in errors with a JSON pointer, at most 50 of num_errors. "
            "Correct the document and send it again.",
        ),
        ErrorKind(
            code="unsupported",
            status=422,
            title="Not in this version",
            explanation="The document is well formed and asks for something that this version cannot do. "
            "The hint says what to use instead.",
        ),
        ErrorKind(
            code="invalid-parameter",
            status=400,
            title="A parameter of the request is wrong",
            explanation="A part of the path, the query or a header has a value that is not accepted.",
        ),
        ErrorKind(
            code="unauthorized",
            status=401,
            title="A key or a token is needed",
            explanation="Send Authorization: Bearer with a key that is valid, or with a token of the issuer that the "
            "server trusts; the detail says what is wrong. An operator of the server makes keys with shardplan keys "
            "create.",
        ),
        ErrorKind(
            code="forbidden",
            status=403,
            title="The key or token does not reach as far",
            explanation="The detail names the scope that is missing. Take a key or a token that has it.",
        ),
        ErrorKind(
            code="broken-request",
            status=400,
            title="The request is not HTTP/1.1",
            explanation="Its first line, a header or the frame of its body cannot be read. Use an HTTP library; where "
            "one was used, look at what stands between it and the server.",
        ),
        ErrorKind(
            code="broken-body",
            status=400,
            title="The body cannot be decompressed",
            explanation="It is not what Content-Encoding says, or a part of it is missing. Send it again.",
        ),
        ErrorKind(
            code="not-found",
            status=404,
            title="Nothing is here",
            explanation="No resource has this address. Solves, plans and channels are found by the ids in answers.",
        ),
        ErrorKind(
            code="method-not-allowed",
            status=405,
            title="The method does not fit the address",
            explanation="The Allow header lists the methods of this address.",
        ),
        ErrorKind(
            code="solve-state",
            status=409,
            title="The solve is in another state",
            explanation="Failed and cancelled solves are tried again; solves that have ended are deleted. The detail "
            "names the state.",
        ),
        ErrorKind(
            code="study-state",
            status=409,
            title="The study is in another state",
            explanation="Studies that have ended are deleted. The detail names the state.",
        ),
        ErrorKind(
            code="deadline-passed",
            status=422,
            title="The deadline has passed",
            explanation="The deadline of the request lies in the past by the clock of the server. Send a later one.",
        ),
        ErrorKind(
            code="key-in-flight",
            status=409,
            title="The first request with this key is being read",
            explanation="Send the request again after the time in Retry-After: it will be answered by what the first "
            "one has made.",
            retryable=True,
        ),
        ErrorKind(
            code="key-reused",
            status=422,
            title="The key belongs to another request",
            explanation="The Idempotency-Key was used in the last 24 hours with another body or query. Take a new key "
            "for a new request.",
        ),
        ErrorKind(
            code="channel-changed",
            status=412,
            title="The channel is not what you expected",
            explanation="Somebody changed the channel, or it exists already. Read it, decide again, and send its ETag "
            "in If-Match.",
        ),
        ErrorKind(
            code="activation-changed",
            status=412,
            title="Another model is active than you expected",
            explanation="Somebody activated another cost model, or none is active. Read the activation, decide again, "
            "and send its ETag in If-Match.",
        ),
        ErrorKind(
            code="request-timeout",
            status=408,
            title="The request came too slowly",
            explanation="Nothing was done with it. Send it again, on a connection that is not as slow; the limits are "
            "SHARDPLAN_HEAD_PATIENCE_SECONDS of the server for its head, and SHARDPLAN_BODY_PATIENCE_SECONDS for its "
            "body, with a second more for each 32 KiB that came.",
            retryable=True,
        ),
        ErrorKind(
            code="body-too-large",
            status=413,
            title="The body is too large",
            explanation="The limit is SHARDPLAN_MAX_BODY_BYTES of the server, before and after decompression.",
        ),
        ErrorKind(
            code="unsupported-media-type",
            status=415,
            title="The body is not JSON",
            explanation="Send Content-Type: application/json; Content-Encoding may be gzip or zstd.",
        ),
        ErrorKind(
            code="export-refused",
            status=422,
            title="The plan cannot be exported like this",
            explanation="The format needs something that the plan or the request does not have.",
        ),
        ErrorKind(
            code="no-such-version",
            status=422,
            title="The channel has no such earlier version",
            explanation="A rollback goes to a version before the current one. The history of the channel lists them.",
        ),
        ErrorKind(
            code="no-such-rank",
            status=422,
            title="The plan has no such rank",
            explanation="Ranks count from 0 to the world size of the plan less one; the detail names the last.",
        ),
        ErrorKind(
            code="no-such-world-size",
            status=404,
            title="The channel has no plan for this world size",
            explanation="Its plans are for the sizes that the detail names; without world_size, the main plan comes.",
        ),
        ErrorKind(
            code="precondition-required",
            status=428,
            title="Say which version you change",
            explanation="The channel exists, or a model is active. Send its ETag in If-Match, so no change is lost.",
        ),
        ErrorKind(
            code="webhook-refused",
            status=422,
            title="Nothing is sent to this address",
            explanation="The detail says why. SHARDPLAN_WEBHOOK_HOSTS of the server lists the hosts that webhooks may "
            "have, and addresses that are not public.",
        ),
        ErrorKind(
            code="too-many-webhooks",
            status=409,
            title="There are too many webhooks",
            explanation="Delete one that is not needed any more.",
        ),
        ErrorKind(
            code="internal",
            status=500,
            title="The service failed",
            explanation="This is a defect. The log of the server has the request_id.",
        ),
        ErrorKind(
            code="head-too-large",
            status=431,
            title="The head of the request is too large",
            explanation="The address and the headers of a request, or what follows its body, may have 64 KiB. "
            "Documents belong into the body.",
        ),
        ErrorKind(
            code="too-many-requests",
            status=429,
            title="Too many requests",
            explanation="Try again after the time in Retry-After. The limit is SHARDPLAN_RATE_LIMIT_PER_MINUTE, for "
            "each key, or for each address where there is none. Fetches of plans are not counted.",
            retryable=True,
        ),
        ErrorKind(
            code="queue-full",
            status=503,
            title="Too many solves or fits are waiting",
            explanation="Try again after the time in Retry-After. The limits are SHARDPLAN_MAX_QUEUED_SOLVES and "
            "SHARDPLAN_MAX_QUEUED_FITS.",
            retryable=True,
        ),
        ErrorKind(
            code="caller-bodies-full",
            status=429,
            title="Too many bytes at once",
            explanation="Bodies that you sent and that are not answered yet would take too much together. Send fewer "
            "at a time; try again after the time in Retry-After. The limit is SHARDPLAN_MAX_CALLER_BODIES_BYTES, for "
            "each key, or for each address where there is none.",
            retryable=True,
        ),
        ErrorKind(
            code="bodies-full",
            status=503,
            title="The server has too many bodies to read",
            explanation="Bodies of all callers that are not answered yet would take too much together. Try again "
            "after the time in Retry-After. The limit is SHARDPLAN_MAX_BODIES_BYTES.",
            retryable=True,
        ),
        ErrorKind(
            code="too-many-listeners",
            status=503,
            title="Too many streams are open",
            explanation="Try again after the time in Retry-After, or poll with ?wait=N. The limit is "
            "SHARDPLAN_MAX_EVENT_STREAMS.",
            retryable=True,
        ),
        ErrorKind(
            code="storage-unavailable",
            status=503,
            title="The database does not answer",
            explanation="The disk is full, or the database is locked. Nothing was changed. Try again later.",
            retryable=True,
        ),
        ErrorKind(
            code="issuer-unavailable",
            status=503,
            title="The issuer of the token does not answer",
            explanation="The token names a key that the server has not seen yet, and its issuer cannot be asked for "
            "it. Try again later; tokens with keys that were seen, and keys of this service, go on to work.",
            retryable=True,
        ),
        ErrorKind(
            code="not-ready",
            status=503,
            title="The server is not ready",
            explanation="The server starts or stops. Try again later.",
            retryable=True,
        ),
    )
}
