"""All operations of the API, in the order of its description."""

from __future__ import annotations

from acklog.server.http.endpoint import Endpoint
from acklog.server.http.routes.configs import CONFIGS
from acklog.server.http.routes.groups import GROUPS
from acklog.server.http.routes.node import NODE
from acklog.server.http.routes.topics import TOPICS

ENDPOINTS: tuple[Endpoint, ...] = (*TOPICS, *GROUPS, *CONFIGS, *NODE)
