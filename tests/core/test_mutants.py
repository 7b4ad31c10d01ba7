"""Every fault that is seeded into the core is found by the state machine: else it proves little."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.core.machine import LONG
from tests.core.mutants import MUTANTS, Mutant, seeded

SEARCH = settings(
    max_examples=20_000,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    verbosity=Verbosity.quiet,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


CHOSEN = [mutant for mutant in MUTANTS if LONG or not mutant.rare]


@pytest.mark.timeout(0)
@pytest.mark.parametrize('mutant', CHOSEN, ids=[mutant.fault for mutant in CHOSEN])
def test_the_state_machine_finds(mutant: Mutant) -> None:
    with seeded(mutant) as machine, pytest.raises((Exception, pytest.fail.Exception)):
        run_state_machine_as_test(machine, settings=SEARCH)
