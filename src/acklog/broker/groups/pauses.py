"""Groups that are paused: nothing is delivered to them, by an operator's wish or because too much of theirs died.

Remembered by the catalog: note 'paused', key: the group's incarnation, {"reason": ..., "since": ms}. What a paused
group holds may be settled; what falls due becomes available and waits for the resume.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from acklog.broker.eager import Eager
from acklog.errors import LogError

if TYPE_CHECKING:
    from acklog.broker.broker import Broker
    from acklog.broker.catalog.catalog import Group

NOTE = 'paused'

logger = logging.getLogger('acklog.groups')


class Pause(NamedTuple):
    """Why, and since when (ms)."""

    reason: str
    since: int


class Pauses:
    """The paused groups of this node."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._paused: dict[int, Pause] = {}  # by incarnation

    def of(self, group: Group) -> Pause | None:
        """The group's pause, if it is paused."""
        return self._paused.get(group.id)

    async def pause(self, group: Group, reason: str) -> None:
        """Remembered when it returns. Raises LogError; then it is not paused."""
        pause = Pause(reason, self._broker.clock())
        await self._broker.catalog.record(NOTE, str(group.id), pause._asdict())
        if self._broker.group_by_id(group.id) is group:
            self._set(group, pause)
        else:  # deleted meanwhile
            await self._broker.catalog.record(NOTE, str(group.id), None)

    def pause_now(self, group: Group, reason: str) -> None:
        """Paused at once; one that cannot be remembered ends with the server."""
        pause = Pause(reason, self._broker.clock())
        self._set(group, pause)
        Eager(self._broker.catalog.record(NOTE, str(group.id), pause._asdict()), self._recorded)

    async def resume(self, group: Group) -> bool:
        """False if it was not paused. Raises LogError; then it still is."""
        if group.id not in self._paused:
            return False
        await self._broker.catalog.record(NOTE, str(group.id), None)
        self._set(group, None)
        logger.warning('group %s is resumed', group.name)
        return True

    async def forget(self, group: Group) -> None:
        """The group was deleted."""
        if self._paused.pop(group.id, None) is not None:
            await self._broker.catalog.record(NOTE, str(group.id), None)

    async def recover(self) -> None:
        """Take up the pauses from before a restart."""
        for key, value in list(self._broker.catalog.notes(NOTE).items()):
            group = self._broker.group_by_id(int(key))
            if group is None:
                await self._broker.catalog.record(NOTE, key, None)
            else:
                self._set(group, Pause(value['reason'], value['since']))

    def _set(self, group: Group, pause: Pause | None) -> None:
        if pause is None:
            self._paused.pop(group.id, None)
        else:
            self._paused[group.id] = pause
            logger.warning('group %s is paused: %s', group.name, pause.reason)
        for delivery in self._broker.deliveries.of_group(group.id):
            delivery.paused = pause is not None
            delivery.offer()

    def _recorded(self, _: None, error: BaseException | None) -> None:
        if isinstance(error, LogError):
            logger.error('that a group is paused could not be remembered: %s', error)
        elif error is not None:
            raise error
