"""A wall clock that can be set, for a server's `Clock`."""

import time


class Wall:
    """In ns, as `time.time_ns`. `ahead_ns`: of the real one."""

    def __init__(self) -> None:
        self.ahead_ns = 0

    def __call__(self) -> int:
        return time.time_ns() + self.ahead_ns
