"""What is said about the errors that every interface knows: the same words in the server's answers over the Kafka
protocol and over HTTP, and in the client where an answer has only a code.

A name is written as `repr` does; a place as `topic/partition/offset`, as the command line takes it.
"""

from __future__ import annotations

import re

LONGEST_TOPIC = 249  # characters
LONGEST_GROUP = 255  # characters
LONGEST_MEMBER = 255  # characters
INTERNAL = '__'  # the server's own topics begin so

TOPIC_RULE = (
    f"a topic's name has 1 to {LONGEST_TOPIC} of the characters a-z, A-Z, 0-9, '.', '_' and '-', and is not '.' or '..'"
)
INTERNAL_RULE = f"names that begin with '{INTERNAL}' are kept for the server's own topics"
GROUP_RULE = f"a group's name has 1 to {LONGEST_GROUP} characters"
MEMBER_RULE = f"a member's name has 1 to {LONGEST_MEMBER} characters"

_TOPIC = re.compile(rf'[a-zA-Z0-9._-]{{1,{LONGEST_TOPIC}}}')


def topic_fault(name: str) -> str | None:
    """Why no topic has this name, on acklog or on Apache Kafka; None if one may."""
    return None if _TOPIC.fullmatch(name) and name not in ('.', '..') else TOPIC_RULE


def new_topic_fault(name: str) -> str | None:
    """Why no topic of this name can be created on acklog; None if one can."""
    return topic_fault(name) or (INTERNAL_RULE if name.startswith(INTERNAL) else None)


def group_fault(name: str) -> str | None:
    """Why no group has this name; None if one may."""
    return None if 0 < len(name) <= LONGEST_GROUP else GROUP_RULE


def no_such(what: str) -> str:
    """`what`: kind and name, as in "topic 'orders'"."""
    return f'there is no {what}'


def no_partition(topic: str, partitions: int, index: int) -> str:
    """The topic has fewer partitions than that."""
    return f'topic {topic!r} has the partitions 0 to {partitions - 1}, not {index}'


def has_members(group: str) -> str:
    """`group`: kind and name, as in "group 'billing'"."""
    return f'{group} has members: stop its subscribers first'


def exists(what: str) -> str:
    """`what`: kind and name, as in "topic 'orders'"."""
    return f'there is a {what} already'


def delivers_at_once(topic: str) -> str:
    """Nothing can be published for later there."""
    return f'topic {topic!r} delivers at once; acklog.deliver.at.enable=true lets records wait'
