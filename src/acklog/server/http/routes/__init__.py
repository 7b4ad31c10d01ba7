"""All operations of the API, in the order of its description."""

from __future__ import annotations

from acklog.server.http.endpoint import Endpoint
from acklog.server.http.routes.configs import CONFIGS
from acklog.server.http.routes.dead import DEAD
from acklog.server.http.routes.groups import GROUPS
from acklog.server.http.routes.insight import INSIGHT
from acklog.server.http.routes.moving import MOVING
from acklog.server.http.routes.node import NODE
from acklog.server.http.routes.records import RECORDS
from acklog.server.http.routes.scheduled import SCHEDULED
from acklog.server.http.routes.subscribing import SUBSCRIBING
from acklog.server.http.routes.topics import TOPICS
from acklog.server.http.routes.waiting import WAITING

ENDPOINTS: tuple[Endpoint, ...] = (
    *RECORDS,
    *SUBSCRIBING,
    *TOPICS,
    *GROUPS,
    *INSIGHT,
    *WAITING,
    *DEAD,
    *MOVING,
    *SCHEDULED,
    *CONFIGS,
    *NODE,
)
