"""Where a group that does not exist yet begins.

Strategy: the group's config `share.auto.offset.reset` is set before its first member joins. A group that exists has its
place in the log already, so nothing is changed there.
"""

from __future__ import annotations

from acklog.client.admin import Admin

RESET = 'share.auto.offset.reset'


async def begin_new_group(admin: Admin, group: str, where: str) -> bool:
    """Let it begin at 'earliest', 'latest' or 'by_duration:PT...S'; False if it exists. Raises Refused where the server
    does not take the value."""
    if await admin.group_exists(group):
        return False
    await admin.alter_group_configs(group, {RESET: where})
    return True
