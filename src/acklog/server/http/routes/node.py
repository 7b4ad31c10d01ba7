"""The server itself: what it is, whether it is well, and the description of all this."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

import acklog
from acklog.errors import LogError
from acklog.server.addresses import show_address
from acklog.server.http.endpoint import EVENTS, JSON, Call, Raw, Stream, endpoint
from acklog.server.http.problems import Problem
from acklog.server.http.values import GroupName


class NodeView(Struct):
    """A server. `kafka`: where clients of the Kafka protocol connect; `now_ms`: what its clock shows."""

    version: str
    cluster_id: str
    kafka: str
    now_ms: int


class Health(Struct):
    """How the server is."""

    status: Annotated[Literal['live', 'ready'], Meta(description='As the path says.')]


@endpoint(
    'GET',
    '/v1',
    tag='server',
    examples=(
        None,
        {
            'version': '0.1.0',
            'cluster_id': 'Yx0pXf0mQ1q1w3yQ0b0bFA',
            'kafka': '127.0.0.1:9092',
            'now_ms': 1_767_225_600_000,
        },
    ),
)
async def show_node(call: Call) -> NodeView:
    """Show what server this is."""
    node = call.broker.node
    kafka = show_address(node.host, node.port)
    return NodeView(acklog.__version__, node.cluster_id, kafka, call.broker.clock())


@endpoint('GET', '/v1/openapi.json', tag='server')
async def describe_api(call: Call) -> object:
    """Describe this API, as OpenAPI 3.1."""
    from acklog.server.http.openapi import document_json

    return Raw(document_json(), JSON)


@endpoint('GET', '/health/live', tag='server', examples=(None, {'status': 'live'}))
async def is_live(call: Call) -> Health:
    """Say that the process runs. It is not asked whether it can work: see `/health/ready`."""
    return Health('live')


@endpoint('GET', '/health/ready', tag='server', refuses=(503,), examples=(None, {'status': 'ready'}))
async def is_ready(call: Call) -> Health:
    """Say whether requests may be sent here: 503 while the server stops, or when it cannot write what it has to."""
    if call.broker.stopping:
        raise Problem(503, 'The server is stopping.')
    try:
        await call.broker.deliveries.journal.log.flush()
    except LogError as error:
        raise Problem(503, f'The journal of groups cannot be written: {error}') from None
    return Health('ready')


class Watching(Struct, forbid_unknown_fields=True):
    """What to hear of."""

    group: Annotated[GroupName | None, Meta(description='Only of this group; without: of all.')] = None


@endpoint('GET', '/metrics', tag='server', media_types=('text/plain',))
async def show_metrics(call: Call) -> object:
    """Show metrics, as Prometheus reads them."""
    from acklog.server.http.metrics import MEDIA_TYPE, exposition

    return Raw(await exposition(call.listener, call.caller), MEDIA_TYPE)


@endpoint('GET', '/v1/events', tag='server', refuses=(404,), media_types=(EVENTS,))
async def watch(call: Call, query: Watching) -> object:
    """Hear of changes in groups, as server-sent events, until one side ends it.

    `lag` and `dead` (of a group on a topic), `members` and `paused` (of a group): at first how things are, then, at
    most once a second, what has changed. `gone`: there is no such thing any more. What a slow reader has not taken is
    replaced by what is newer."""
    return Stream(call.listener.events.open(call.caller, query.group), EVENTS)


NODE = (show_node, describe_api, watch, is_live, is_ready, show_metrics)
