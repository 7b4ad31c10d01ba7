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


def test_one_at_a_time_goes_on_above_the_limit():
    budget = Budget(100)
    budget.take(200)
    calls = []
    one, other = object(), object()
    assert budget.take_turn(one)
    assert budget.take_turn(one)
    assert not budget.take_turn(other)
    budget.wait(lambda: calls.append(budget.take_turn(other)))
    budget.end_turn(other)  # it has none
    assert calls == []
    budget.end_turn(one)
    assert calls == [True]
    assert budget.turn is other


def test_who_finds_no_room_after_all_waits_behind_the_others():
    budget = Budget(100)
    budget.take(100)
    calls = []

    def greedy():
        calls.append('greedy')
        budget.take(100)
        budget.wait(greedy)

    budget.wait(greedy)
    budget.wait(lambda: calls.append('modest'))
    budget.give_back(50)
    assert calls == ['greedy']
    budget.give_back(100)
    assert calls == ['greedy', 'modest', 'greedy']


def test_who_is_gone_is_not_called():
    budget = Budget(100)
    budget.take(100)
    calls = []

    def resume():
        calls.append('resumed')

    budget.wait(resume)
    budget.forget(resume)
    budget.give_back(100)
    assert calls == []
    assert budget.taken == 0
