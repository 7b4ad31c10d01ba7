"""The server itself: what it is, whether it is well, and the description of all this."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

import acklog
from acklog.server.addresses import show_address
from acklog.server.http.endpoint import JSON, Call, Raw, endpoint
from acklog.server.http.problems import Problem


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
    return Health('ready')


NODE = (show_node, describe_api, is_live, is_ready)
