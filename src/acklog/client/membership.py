"""Membership in a share group: heartbeats, and the partitions that the group assigns (KIP-932).

Strategy: the member makes its own id and joins with epoch 0 and its topics; later heartbeats only say that it is
alive, and their answers bring a changed assignment. Heartbeats have a connection of their own, to the group's
coordinator. After "unknown member" or "fenced" the member joins again; while the coordinator is being looked for or
does not answer it tries again. Until it has its first assignment it asks more often than it must, because Apache
Kafka gives it only with a later heartbeat. Any other error ends the membership and is raised by whoever uses it.
That no server answers is a warning, once, and so is that one does again: a subscriber waits for it as long as it takes,
and whoever looks at one that gets nothing should know why.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from acklog.client.calls import SHARE_GROUP_HEARTBEAT, Cold
from acklog.client.cluster import Cluster
from acklog.client.errors import PASSING, Disconnected, TimedOut, error_code, refusal
from acklog.client.retry import Backoff
from acklog.errors import AcklogError
from acklog.wire.error_code import ErrorCode

logger = logging.getLogger('acklog.client')

JOIN, LEAVE = 0, -1  # member epochs that say so

Assignment = Mapping[uuid.UUID, frozenset[int]]  # topic id -> partitions

_REJOIN = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
_ELSEWHERE = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)


class Membership:
    """One member of a group. `changed` is set whenever the assignment has changed or the membership has ended."""

    def __init__(self, cluster: Cluster, group: str, topics: Sequence[str]) -> None:
        self.group, self.topics = group, list(topics)
        self.id = str(uuid.uuid4())
        self.assignment: Assignment = {}
        self.changed = asyncio.Event()
        self.failure: AcklogError | None = None
        self._cluster = cluster
        self._epoch = JOIN
        self._interval = 3.0
        self._purpose = f'heartbeat {self.id}'
        self._task: asyncio.Task[None] | None = None

    @property
    def joined(self) -> bool:
        return self._task is not None

    async def join(self) -> None:
        """Join the group and keep the membership alive until `leave`.

        Raises the connection's errors, Unsupported where the server has no share groups, and Refused."""
        backoff, deadline = Backoff(), asyncio.get_running_loop().time() + self._cluster.timeout
        while not await self._beat():
            if asyncio.get_running_loop().time() > deadline:
                raise TimedOut(f'group {self.group!r} has no coordinator within {self._cluster.timeout:g} s')
            await backoff.wait()
        self._task = asyncio.create_task(self._keep())

    async def leave(self) -> None:
        """Leave the group. What goes wrong on the way out is passed over: the server notices by itself."""
        if self._task is None:
            return
        task, self._task = self._task, None
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        try:
            if self._epoch > 0:
                await self._ask(LEAVE, None)
        except AcklogError:
            pass
        finally:
            await self._drop()

    async def _keep(self) -> None:
        backoff, eager = Backoff(), Backoff()
        silent = False
        while True:
            if self.assignment:
                await asyncio.sleep(self._interval)
            else:
                await asyncio.sleep(min(self._interval, eager.next()))
            try:
                while not await self._beat():
                    await backoff.wait()
                backoff.reset()
                if silent:
                    silent = False
                    logger.warning('group %r: the server answers again', self.group)
            except PASSING as error:
                if not silent and not isinstance(error, Disconnected):  # which is mostly over at the next try
                    silent = True
                    logger.warning('group %r: %s; trying again', self.group, error)
                self._cluster.forget_coordinator(self.group)
                await backoff.wait()
            except AcklogError as error:
                self.failure = error
                self.changed.set()
                return

    async def _beat(self) -> bool:
        """One heartbeat; False if it has to be tried again."""
        joining = self._epoch == JOIN
        answer = await self._ask(self._epoch, self.topics if joining else None)
        code = error_code(answer.error_code)
        if code is ErrorCode.NONE:
            self._alive(answer, joining)
            return True
        if code in _REJOIN and not joining:
            self._epoch = JOIN
        elif code in _ELSEWHERE:
            self._cluster.forget_coordinator(self.group)
        else:
            raise refusal(code, f'group {self.group!r}', answer.error_message)
        return False

    def _alive(self, answer: Any, joined: bool) -> None:
        self._epoch = answer.member_epoch
        interval = answer.heartbeat_interval
        milliseconds = interval / timedelta(milliseconds=1) if isinstance(interval, timedelta) else interval
        self._interval = max(0.05, milliseconds / 1000)
        if answer.assignment is None:
            assignment: Assignment = {} if joined else self.assignment
        else:
            assignment = {part.topic_id: frozenset(part.partitions) for part in answer.assignment.topic_partitions}
        if assignment != self.assignment:
            self.assignment = assignment
            self.changed.set()

    async def _ask(self, epoch: int, topics: Sequence[str] | None) -> Any:
        fields = {
            'group_id': self.group,
            'member_id': self.id,
            'member_epoch': epoch,
            'rack_id': None,
            'subscribed_topic_names': topics,
        }
        node = await self._cluster.coordinator(self.group)
        connection = await self._cluster.connection(node, self._purpose)
        return await connection.call(Cold(SHARE_GROUP_HEARTBEAT, fields), self._cluster.timeout)

    async def _drop(self) -> None:
        await self._cluster.drop_purpose(self._purpose)
