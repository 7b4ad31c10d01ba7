"""The bound for all requests under way together."""

from acklog.server.budget import Budget


def test_lets_one_request_in_above_the_limit_then_no_more():
    budget = Budget(100)
    budget.take(90)
    assert budget.has_room
    budget.take(500)
    assert not budget.has_room


def test_who_waits_is_called_in_order_as_long_as_there_is_room():
    budget = Budget(100)
    budget.take(100)
    calls = []

    def first():
        calls.append('first')
        budget.take(100)

    def second():
        calls.append('second')

    budget.wait(first)
    budget.wait(second)
    budget.wait(first)  # waits already
    budget.give_back(100)
    assert calls == ['first']
    budget.give_back(100)
    assert calls == ['first', 'second']
