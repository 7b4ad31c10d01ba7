"""Versions of messages that Kafka has and kio does not yet: kio's class of the version before, and what came to it.

Once kio has a version, its own class is used, and the entry here can go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, make_dataclass
from typing import Any

from acklog.wire.kio_import import kio

REQUEST, RESPONSE = 'request', 'response'


def _api_versions_request_v5() -> type[Any]:
    """Whom the client believes to speak to (KIP-1242)."""
    kio()
    from kio.schema.api_versions.v4 import ApiVersionsRequest
    from kio.static.primitive import i16, i32

    return make_dataclass(
        'ApiVersionsRequest',
        [
            ('cluster_id', str | None, field(metadata={'kafka_type': 'string'}, default=None)),
            ('node_id', i32, field(metadata={'kafka_type': 'int32'}, default=i32(-1))),
        ],
        bases=(ApiVersionsRequest,),
        namespace={'__version__': i16(5)},
        frozen=True,
        slots=True,
        kw_only=True,
    )


def _api_versions_response_v5() -> type[Any]:
    """As v4."""
    kio()
    from kio.schema.api_versions.v4 import ApiVersionsResponse

    return ApiVersionsResponse


NEWER: dict[tuple[int, int, str], Callable[[], type[Any]]] = {
    (18, 5, REQUEST): _api_versions_request_v5,
    (18, 5, RESPONSE): _api_versions_response_v5,
}


def newest(api_key: int) -> int:
    """The highest version of an API that is here, or -1."""
    return max((version for key, version, _ in NEWER if key == api_key), default=-1)
