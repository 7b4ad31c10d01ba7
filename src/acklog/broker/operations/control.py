"""Pausing a group."""

from __future__ import annotations

from acklog.broker.api import Caller, Refused
from acklog.broker.operations.chosen import Operation
from acklog.wire.error_code import ErrorCode

LONGEST_REASON = 1000  # characters


class Control(Operation):
    """Pause and resume; both are remembered over a restart."""

    async def pause(self, caller: Caller, group: str, reason: str = '') -> None:
        """Nothing is delivered to the group until `resume`; what is held may be settled. Without a reason the one that
        it is paused for already stays."""
        found = self._group(caller, group, 'READ')
        if len(reason) > LONGEST_REASON:
            raise Refused(ErrorCode.INVALID_REQUEST, f'a reason has at most {LONGEST_REASON} characters')
        before = self.broker.pauses.of(found)
        await self.broker.pauses.pause(found, reason or ('paused by an operator' if before is None else before.reason))

    async def resume(self, caller: Caller, group: str) -> bool:
        """Deliver again; False if it was not paused."""
        return await self.broker.pauses.resume(self._group(caller, group, 'READ'))
