"""The Python client. What is listed in `__all__` is public; see docs/python-client.md."""

from __future__ import annotations

from acklog.client.admin import EARLIEST, LATEST, Admin
from acklog.client.client import Client
from acklog.client.descriptions import (
    Config,
    DescribedGroup,
    DescribedPartition,
    DescribedTopic,
    ListedGroup,
    ListedTopic,
    Member,
    PartitionLag,
)
from acklog.client.errors import (
    AcknowledgementFailure,
    AcknowledgementsRefused,
    AlreadyExists,
    ClientClosed,
    ClientError,
    Disconnected,
    NotFound,
    Refused,
    TimedOut,
    TooManyUnsettled,
    Unreachable,
    Unsupported,
)
from acklog.client.outbox import Published
from acklog.client.producer import Producer
from acklog.client.received import Received
from acklog.client.subscription import Subscription
from acklog.wire.record_batch import NewRecord

__all__ = [
    'EARLIEST',
    'LATEST',
    'AcknowledgementFailure',
    'AcknowledgementsRefused',
    'Admin',
    'AlreadyExists',
    'Client',
    'ClientClosed',
    'ClientError',
    'Config',
    'DescribedGroup',
    'DescribedPartition',
    'DescribedTopic',
    'Disconnected',
    'ListedGroup',
    'ListedTopic',
    'Member',
    'NewRecord',
    'NotFound',
    'PartitionLag',
    'Producer',
    'Published',
    'Received',
    'Refused',
    'Subscription',
    'TimedOut',
    'TooManyUnsettled',
    'Unreachable',
    'Unsupported',
]
