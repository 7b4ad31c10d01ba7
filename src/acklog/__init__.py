"""acklog: a message server on a replayable log, where each record is signed off.

    import acklog

    async with acklog.connect('localhost:9092') as client:
        await client.publish('orders', b'first')
        async with client.subscribe('billing', ['orders']) as subscription:
            async for record in subscription:
                record.accept()

`connect_sync` is the same for synchronous code, `worker` makes a subscriber of a function. `import acklog` loads
nothing else: what is named in `__all__` is loaded when it is used first. The server is started by `acklog serve`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acklog.client import Client as Client
    from acklog.client import NewRecord as NewRecord
    from acklog.client import Published as Published
    from acklog.client import Received as Received
    from acklog.client import Subscription as Subscription
    from acklog.client import Unsupported as Unsupported
    from acklog.client.blocking import BlockingClient as BlockingClient
    from acklog.client.blocking import BlockingSubscription as BlockingSubscription
    from acklog.client.connect import connect as connect
    from acklog.client.connect import connect_sync as connect_sync
    from acklog.client.worker import Reject as Reject
    from acklog.client.worker import Worker as Worker
    from acklog.client.worker import worker as worker
    from acklog.errors import AcklogError as AcklogError

    __version__: str

_PLACES = {
    'AcklogError': 'acklog.errors',
    'BlockingClient': 'acklog.client.blocking',
    'BlockingSubscription': 'acklog.client.blocking',
    'Client': 'acklog.client',
    'NewRecord': 'acklog.client',
    'Published': 'acklog.client',
    'Received': 'acklog.client',
    'Reject': 'acklog.client.worker',
    'Subscription': 'acklog.client',
    'Unsupported': 'acklog.client',
    'Worker': 'acklog.client.worker',
    'connect': 'acklog.client.connect',
    'connect_sync': 'acklog.client.connect',
    'worker': 'acklog.client.worker',
}

__all__ = [
    'AcklogError',
    'BlockingClient',
    'BlockingSubscription',
    'Client',
    'NewRecord',
    'Published',
    'Received',
    'Reject',
    'Subscription',
    'Unsupported',
    'Worker',
    '__version__',
    'connect',
    'connect_sync',
    'worker',
]


def __getattr__(name: str) -> Any:
    """What is public, when it is asked for: `__version__` too, since reading the installed package's metadata costs
    20 ms."""
    if name == '__version__':
        from importlib.metadata import version

        return version('acklog')
    if name in _PLACES:
        found = globals()[name] = getattr(import_module(_PLACES[name]), name)
        return found
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
