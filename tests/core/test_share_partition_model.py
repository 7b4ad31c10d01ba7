"""The share partition against its reference, by hypothesis. ACKLOG_LONG=1 makes it a run of some million calls."""

from __future__ import annotations

import pytest
from tests.core.machine import SETTINGS, Machine

TestSharePartition = Machine.TestCase
TestSharePartition.settings = SETTINGS
TestSharePartition.pytestmark = [pytest.mark.timeout(0)]
