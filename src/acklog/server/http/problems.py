"""Errors as HTTP says them: problem details (RFC 9457), one status for each of the broker's error codes.

400  the request is malformed; `errors` names the field or parameter
403  it comes from a web page of somebody else, or is not allowed
404  there is no such thing
405  not with this method; `Allow` has those that do
408  the body did not arrive in time
409  it does not fit the state that things are in
413  too large
415  not in this media type
421  the Host header names somebody else
431  the head is too large
422  well-formed, but refused for what it says
500  a bug
503  not now; the same request may succeed after `Retry-After` seconds
504  it is unknown whether it was done
507  no space left on the disk
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from acklog import errors
from acklog.broker.answers import answer_to
from acklog.errors import AcklogError
from acklog.wire.error_code import ErrorCode as Code

MEDIA_TYPE = 'application/problem+json'
RETRY_AFTER_S = 1

_STATUS: dict[Code, int] = {
    Code.TOPIC_AUTHORIZATION_FAILED: 403,
    Code.GROUP_AUTHORIZATION_FAILED: 403,
    Code.CLUSTER_AUTHORIZATION_FAILED: 403,
    Code.TOPIC_DELETION_DISABLED: 403,
    Code.UNKNOWN_TOPIC_OR_PARTITION: 404,
    Code.UNKNOWN_TOPIC_ID: 404,
    Code.GROUP_ID_NOT_FOUND: 404,
    Code.UNKNOWN_MEMBER_ID: 404,
    Code.OFFSET_OUT_OF_RANGE: 404,
    Code.RESOURCE_NOT_FOUND: 404,
    Code.TOPIC_ALREADY_EXISTS: 409,
    Code.NON_EMPTY_GROUP: 409,
    Code.INVALID_RECORD_STATE: 409,
    Code.DUPLICATE_RESOURCE: 409,
    Code.FENCED_MEMBER_EPOCH: 409,
    Code.FENCED_STATE_EPOCH: 409,
    Code.MESSAGE_TOO_LARGE: 413,
    Code.RECORD_LIST_TOO_LARGE: 413,
    Code.UNKNOWN_SERVER_ERROR: 500,
    Code.KAFKA_STORAGE_ERROR: 503,
    Code.NOT_LEADER_OR_FOLLOWER: 503,
    Code.LEADER_NOT_AVAILABLE: 503,
    Code.COORDINATOR_NOT_AVAILABLE: 503,
    Code.COORDINATOR_LOAD_IN_PROGRESS: 503,
    Code.GROUP_MAX_SIZE_REACHED: 503,
    Code.SHARE_SESSION_LIMIT_REACHED: 503,
    Code.THROTTLING_QUOTA_EXCEEDED: 503,
    Code.REQUEST_TIMED_OUT: 504,
}


class Problem(AcklogError):
    """A request that is answered with an error.

    `code`: Kafka's name of it, where it has one; `faults`: which fields or parameters are wrong, each with `pointer`
    (into the body, RFC 6901) or `parameter`, and `detail`."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        code: str | None = None,
        faults: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.code, self.faults = status, detail, code, faults
        self.title = HTTPStatus(status).phrase
        self.headers = dict(headers or {})
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.headers.setdefault('retry-after', str(RETRY_AFTER_S))

    def fields(self) -> dict[str, Any]:
        """The members of the problem object."""
        fields: dict[str, Any] = {'type': 'about:blank', 'title': self.title, 'status': self.status}
        fields['detail'] = self.detail
        if self.code is not None:
            fields['code'] = self.code
        if self.faults:
            fields['errors'] = list(self.faults)
        return fields


def problem_of(error: AcklogError) -> Problem:
    """An error of the broker's as HTTP says it; one that is a bug is raised again."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, errors.ConfigError):
        return Problem(422, str(error), code=Code.INVALID_CONFIG.name)
    code, words = answer_to(error)
    status = 507 if isinstance(error, errors.Full) else _STATUS.get(code, 422)
    return Problem(status, words or code.name, code=code.name)
