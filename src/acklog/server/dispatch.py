"""From a frame to its answer: header, API, decode, handler, encode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from acklog.broker.api import Api, Caller
from acklog.broker.apis import APIS
from acklog.errors import AcklogError
from acklog.wire import cold
from acklog.wire.frame import API_VERSIONS, read_request_header, response_frame

if TYPE_CHECKING:
    from acklog.broker.broker import Broker


class Unanswerable(AcklogError):
    """An API or a version that is not served: as Kafka does, the connection is closed."""


class Dispatch:
    """All that is served, by API key."""

    def __init__(self, broker: Broker, apis: Sequence[Api] = APIS) -> None:
        self._broker = broker
        self._apis = {api.key: api for api in apis}

    async def answer(self, caller: Caller, frame: memoryview) -> list[Any] | None:
        """The answer's pieces, or None where the protocol has none. Raises ProtocolError, Unanswerable."""
        header = read_request_header(frame)
        key, version, correlation_id = header.api_key, header.version, header.correlation_id
        caller.client_id = header.client_id
        api = self._apis.get(key)
        if api is None:
            raise Unanswerable(f'API {key} is not served')
        if not api.versions[0] <= version <= api.versions[1]:
            if key == API_VERSIONS:  # KIP-511: answered in v0, so that the client can choose anew
                version = 0
                response = await api.handle(self._broker, caller, -1, None)
                return response_frame(key, 0, correlation_id, [cold.encode_response(key, 0, response)])
            raise Unanswerable(f'{api.name} v{version} is not served, v{api.versions[0]} to v{api.versions[1]} are')
        codec = api.codec
        if codec is not None:
            request = codec.decode(version, header.body)
            del frame, header  # a request that waits keeps no more of what was received than it needs
            response = await api.handle(self._broker, caller, version, request)
            if response is None:
                return None
            return response_frame(key, version, correlation_id, codec.encode(version, response))
        request = await cold.read_request(key, version, header.body)
        del frame, header
        response = await api.handle(self._broker, caller, version, request)
        if response is None:
            return None
        return response_frame(key, version, correlation_id, [await cold.write_response(key, version, response)])
