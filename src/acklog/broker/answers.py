"""Which of Kafka's error codes an exception becomes in an answer. One place, so that equal failures look equal, and so
that damage is told to whoever runs the server, not only to a client that happens to read there."""

from __future__ import annotations

import logging

from acklog import errors
from acklog.broker.api import Refused
from acklog.errors import AcklogError
from acklog.wire.error_code import ErrorCode

_CODES: dict[type[AcklogError], ErrorCode] = {
    errors.InvalidRecordState: ErrorCode.INVALID_RECORD_STATE,
    errors.CorruptBatch: ErrorCode.CORRUPT_MESSAGE,
    errors.InvalidBatch: ErrorCode.INVALID_RECORD,
    errors.UnsupportedFormat: ErrorCode.INVALID_RECORD,
    errors.TooManyBatches: ErrorCode.INVALID_RECORD,
    errors.BatchTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    errors.OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    errors.StaleProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
    errors.OutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    errors.Full: ErrorCode.KAFKA_STORAGE_ERROR,
    errors.Failed: ErrorCode.KAFKA_STORAGE_ERROR,
    errors.Damaged: ErrorCode.KAFKA_STORAGE_ERROR,
    errors.OutcomeUnknown: ErrorCode.REQUEST_TIMED_OUT,
    errors.Fenced: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    errors.Closed: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


MOST_REPORTED = 1000  # places; then they are told again

logger = logging.getLogger('acklog.storage')
_reported: set[str] = set()


def report_damage(error: BaseException) -> None:
    """Say where something stored is broken; once for each place. Other errors are none of this."""
    words = str(error)
    if isinstance(error, errors.Damaged) and words not in _reported:
        if len(_reported) >= MOST_REPORTED:
            _reported.clear()
        _reported.add(words)
        logger.error('damaged: %s', words)


def answer_to(error: BaseException) -> tuple[ErrorCode, str]:
    """(code, words) for an error of ours; anything else is a bug and is raised again."""
    if isinstance(error, Refused):
        return error.code, error.message
    for kind in type(error).__mro__:
        if (code := _CODES.get(kind)) is not None:
            report_damage(error)
            return code, str(error)
    raise error
