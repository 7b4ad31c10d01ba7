"""The Python client. What is listed in `__all__` is public; see docs/python-client.md.

Each name is loaded when it is used first: a command that asks one question needs neither producer nor subscription.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acklog.client.admin import EARLIEST as EARLIEST
    from acklog.client.admin import LATEST as LATEST
    from acklog.client.admin import Admin as Admin
    from acklog.client.client import Client as Client
    from acklog.client.descriptions import Config as Config
    from acklog.client.descriptions import DescribedGroup as DescribedGroup
    from acklog.client.descriptions import DescribedPartition as DescribedPartition
    from acklog.client.descriptions import DescribedTopic as DescribedTopic
    from acklog.client.descriptions import ListedGroup as ListedGroup
    from acklog.client.descriptions import ListedTopic as ListedTopic
    from acklog.client.descriptions import Member as Member
    from acklog.client.descriptions import PartitionLag as PartitionLag
    from acklog.client.errors import AcknowledgementFailure as AcknowledgementFailure
    from acklog.client.errors import AcknowledgementsRefused as AcknowledgementsRefused
    from acklog.client.errors import AlreadyExists as AlreadyExists
    from acklog.client.errors import ClientClosed as ClientClosed
    from acklog.client.errors import ClientError as ClientError
    from acklog.client.errors import Disconnected as Disconnected
    from acklog.client.errors import NotFound as NotFound
    from acklog.client.errors import Refused as Refused
    from acklog.client.errors import TimedOut as TimedOut
    from acklog.client.errors import TooManyUnsettled as TooManyUnsettled
    from acklog.client.errors import Unreachable as Unreachable
    from acklog.client.errors import Unsupported as Unsupported
    from acklog.client.outbox import Published as Published
    from acklog.client.producer import Producer as Producer
    from acklog.client.received import Received as Received
    from acklog.client.subscription import Subscription as Subscription
    from acklog.wire.record_batch import NewRecord as NewRecord

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

_PLACES = {
    'acklog.client.admin': ('EARLIEST', 'LATEST', 'Admin'),
    'acklog.client.client': ('Client',),
    'acklog.client.descriptions': (
        'Config',
        'DescribedGroup',
        'DescribedPartition',
        'DescribedTopic',
        'ListedGroup',
        'ListedTopic',
        'Member',
        'PartitionLag',
    ),
    'acklog.client.errors': (
        'AcknowledgementFailure',
        'AcknowledgementsRefused',
        'AlreadyExists',
        'ClientClosed',
        'ClientError',
        'Disconnected',
        'NotFound',
        'Refused',
        'TimedOut',
        'TooManyUnsettled',
        'Unreachable',
        'Unsupported',
    ),
    'acklog.client.outbox': ('Published',),
    'acklog.client.producer': ('Producer',),
    'acklog.client.received': ('Received',),
    'acklog.client.subscription': ('Subscription',),
    'acklog.wire.record_batch': ('NewRecord',),
}


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names:
            found = globals()[name] = getattr(import_module(module), name)
            return found
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
