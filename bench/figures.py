"""All figures of the benchmarks: what they are called, their unit, which way is better, and what they are to reach.

A goal is a ratio to Kafka's median of the same run (`times`), or a number (`at_most`, `at_least`); some refer to the
disk.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Figure(NamedTuple):
    """One row of the table."""

    name: str
    label: str
    unit: str
    better: Literal['more', 'less']
    times: float | None = None  # goal: so many times better than Kafka
    at_most: float | None = None  # goal: a bound by itself
    at_least: float | None = None  # goal: the same, from below
    above_fdatasync: float | None = None  # goal: at most the disk's fdatasync p50 and so much


RATE, CPU, US, MS, S, MB, COUNT = 'records/s', 'CPU s per 1 M', 'us', 'ms', 's', 'MB', 'records'

FIGURES = (
    Figure('first_publish', 'the first million after the start: publish, 100 B, acks=all', RATE, 'more'),
    Figure('first_share', 'the first million after the start: share-consume, implicit accept', RATE, 'more'),
    Figure('publish_100b_all', 'publish, 100 B, acks=all', RATE, 'more', times=1.6),
    Figure('publish_100b_1', 'publish, 100 B, acks=1', RATE, 'more', times=1.6),
    Figure('publish_calls', "the client's produce calls of 100 B alone, nothing sent", RATE, 'more'),
    Figure('publish_1kb_all', 'publish, 1 kB, acks=all', RATE, 'more', times=1.6),
    Figure('publish_1kb_1', 'publish, 1 kB, acks=1', RATE, 'more', times=1.6),
    Figure('share_implicit', 'share-consume, implicit accept', RATE, 'more', times=3),
    Figure('share_explicit', 'share-consume, explicit accept', RATE, 'more', times=2),
    Figure('share_alternating', 'share-consume, accept and reject by turns', RATE, 'more', times=10),
    Figure('pair_publish_all', 'two publishers, 100 B, acks=all', RATE, 'more'),
    Figure('pair_publish_1', 'two publishers, 100 B, acks=1', RATE, 'more'),
    Figure('pair_share', 'two share consumers, implicit accept', RATE, 'more'),
    Figure('poll_one', 'share-consume, max.poll.records=1', RATE, 'more'),
    Figure('one_record_publish', 'one-record batches, publish, acks=1', RATE, 'more'),
    Figure('one_record_share', 'one-record batches, share-consume', RATE, 'more'),
    Figure('sync_all_p50', 'synchronous publish, acks=all, p50', US, 'less', above_fdatasync=150),
    Figure('sync_all_p99', 'synchronous publish, acks=all, p99', US, 'less'),
    Figure('sync_1_p50', 'synchronous publish, acks=1, p50', US, 'less', times=1),
    Figure('sync_1_p99', 'synchronous publish, acks=1, p99', US, 'less'),
    Figure('first_sync_p50', 'the first ones after the start: synchronous publish, acks=1, p50', US, 'less'),
    Figure('fdatasync_p50', "the disk's fdatasync, p50", US, 'less'),
    Figure('fdatasync_p99', "the disk's fdatasync, p99", US, 'less'),
    Figure('loopback_p50', 'a few bytes to a process and back, p50', US, 'less'),
    Figure('loopback_p99', 'a few bytes to a process and back, p99', US, 'less'),
    Figure('end_to_end_p50', 'publish to delivery at 1,000/s, p50', US, 'less', at_most=200),
    Figure('end_to_end_p99', 'publish to delivery at 1,000/s, p99', US, 'less'),
    Figure('start', 'start to first answer', S, 'less', at_most=0.4),
    Figure('recovery', 'the same after kill -9, 1 GB in 100 partitions', S, 'less', at_most=0.5),
    Figure('new_member', "a new member's first record", S, 'less', at_most=0.3),
    Figure('takeover_p50', 'takeover from a killed member, p50', MS, 'less', at_most=5),
    Figure('takeover_max', 'takeover from a killed member, slowest', MS, 'less'),
    Figure('first_publish_cpu', 'server CPU: the first million after the start, publish', CPU, 'less'),
    Figure('first_share_cpu', 'server CPU: the first million after the start, share, implicit', CPU, 'less'),
    Figure('publish_cpu_100b_all', 'server CPU: publish, 100 B, acks=all', CPU, 'less', times=10),
    Figure('publish_cpu_100b_1', 'server CPU: publish, 100 B, acks=1', CPU, 'less', times=10),
    Figure('publish_cpu_1kb_all', 'server CPU: publish, 1 kB, acks=all', CPU, 'less'),
    Figure('publish_cpu_1kb_1', 'server CPU: publish, 1 kB, acks=1', CPU, 'less'),
    Figure('share_cpu_implicit', 'server CPU: share, implicit', CPU, 'less', times=10),
    Figure('share_cpu_explicit', 'server CPU: share, explicit', CPU, 'less', times=10),
    Figure('share_cpu_alternating', 'server CPU: share, accept and reject', CPU, 'less', times=10),
    Figure('one_record_cpu', 'server CPU: publish, one-record batches', CPU, 'less'),
    Figure('publish_client', "the client's own CPU: publish, 100 B, acks=1", CPU, 'less'),
    Figure('share_client', "the client's own CPU: share, implicit", CPU, 'less'),
    Figure('idle_mb', 'resident memory, idle', MB, 'less', at_most=50),
    Figure('after_mb', 'resident memory, after all of this', MB, 'less'),
    Figure('many_start', '10,000 partitions: start to first answer', S, 'less', at_most=3),
    Figure('many_mb', '10,000 partitions: resident memory, idle', MB, 'less', at_most=300),
    Figure('many_idle_cpu', '10,000 partitions: CPU, idle', '%', 'less', at_most=1),
)

REDELIVERY = (
    Figure('released_rate', 'release until instants of their own, own client', RATE, 'more'),
    Figure('released_due', 'redelivery: the most that fell due a second', RATE, 'more'),
    Figure('released_p50', 'redelivery: late by, p50', MS, 'less'),
    Figure('released_p99', 'redelivery: late by, p99', MS, 'less', at_most=3),
    Figure('released_alone_p99', 'redelivery: p99 of those due when all were released', MS, 'less', at_most=3),
    Figure('released_max', 'redelivery: late by, at most', MS, 'less'),
    Figure('released_early', 'redelivery: came early', COUNT, 'less', at_most=0),
    Figure('released_mb', 'resident memory with all of these waiting', MB, 'less'),
    Figure('released_cpu', 'server CPU: release these and deliver them', CPU, 'less'),
    Figure('beside_nothing_p50', 'others, publish to delivery at 200/s, p50: before', MS, 'less'),
    Figure('beside_nothing_p99', 'others, publish to delivery at 200/s, p99: before', MS, 'less'),
    Figure('beside_releasing_p50', 'others, p50: while these are released', MS, 'less'),
    Figure('beside_releasing_p99', 'others, p99: while these are released', MS, 'less'),
    Figure('beside_redelivery_p50', 'others, p50: while these come', MS, 'less'),
    Figure('beside_redelivery_p99', 'others, p99: while these come', MS, 'less'),
    Figure('later_rate', 'publish for later, own client', RATE, 'more'),
    Figure('later_due', 'published for later: the most that fell due a second', RATE, 'more'),
    Figure('later_p50', 'published for later: late by, p50', MS, 'less'),
    Figure('later_p99', 'published for later: late by, p99', MS, 'less', at_most=3),
    Figure('later_max', 'published for later: late by, at most', MS, 'less'),
    Figure('later_early', 'published for later: came early', COUNT, 'less', at_most=0),
    Figure('later_cpu', 'server CPU: deliver these', CPU, 'less'),
    Figure('waiting_rate', 'a million waiting: put there by the stock client', RATE, 'more', at_least=150_000),
    Figure('waiting_cpu', 'a million waiting: server CPU of that', CPU, 'less'),
    Figure('waiting_mb', 'a million waiting: resident memory', MB, 'less', at_most=100),
    Figure('waiting_more_mb', 'a million waiting: of that, for them', MB, 'less'),
    Figure('waiting_take', 'a million waiting: take new ones', RATE, 'more'),
    Figure('waiting_take_alone', 'a million waiting: the same where none wait', RATE, 'more'),
    Figure('apart_rate', 'the same, an instant for each: put there', RATE, 'more', at_least=150_000),
    Figure('apart_cpu', 'the same, an instant for each: server CPU', CPU, 'less'),
    Figure('apart_more_mb', 'the same, an instant for each: memory for them', MB, 'less', at_most=100),
    Figure('storm_seconds', '100,000 due at once: until all have come', S, 'less'),
    Figure('storm_early', '100,000 due at once: came early', COUNT, 'less', at_most=0),
    Figure('storm_unordered', '100,000 due at once: came out of order', COUNT, 'less', at_most=0),
    Figure('storm_publish_p99', '100,000 due at once: publish meanwhile, p99', MS, 'less', at_most=20),
    Figure('held_rate', 'every tenth held, the rest settled', RATE, 'more'),
    Figure('held_mb', 'every tenth held: memory for that, server', MB, 'less'),
    Figure('held_client_mb', 'every tenth held: memory for that, client', MB, 'less'),
    Figure('held_settled', 'every tenth held: then those settled', RATE, 'more'),
    Figure('redrive_seconds', '100,000 dead redriven: until all have come', S, 'less'),
    Figure('redrive_rated_seconds', 'the same at 25,000/s', S, 'less'),
    Figure('redrive_rated_early', 'the same: before the rate allows it, at most', MS, 'less', at_most=1),
    Figure('why_p50', '`why` under load, 50/s, p50', MS, 'less'),
    Figure('why_p99', '`why` under load, 50/s, p99', MS, 'less'),
    Figure('record_p50', '`record` under load, 50/s, p50', MS, 'less'),
    Figure('record_p99', '`record` under load, 50/s, p99', MS, 'less'),
    Figure('questions_fall', 'publish and take by so much less meanwhile', '%', 'less'),
    Figure('own_publish', 'own client, publish_all', RATE, 'more'),
    Figure('own_send', 'own client, send, a future for each', RATE, 'more'),
    Figure('c_publish', 'C client, produce', RATE, 'more'),
    Figure('own_publish_slower', 'C client: so many times as fast in publishing', 'x', 'less', at_most=3),
    Figure('own_take', 'own client, poll, accept a batch', RATE, 'more', at_least=150_000),
    Figure('own_take_one', 'own client, async for, record.accept()', RATE, 'more'),
    Figure('own_take_sync', 'own client, synchronous, poll, accept a batch', RATE, 'more'),
    Figure('c_take', 'C client, poll, implicit accept', RATE, 'more'),
    Figure('own_publish_cpu', "the client's own CPU: publish_all", CPU, 'less'),
    Figure('own_send_cpu', "the client's own CPU: send", CPU, 'less'),
    Figure('c_publish_cpu', "the client's own CPU: produce, C client", CPU, 'less'),
    Figure('own_take_cpu', "the client's own CPU: poll, accept a batch", CPU, 'less'),
    Figure('own_take_one_cpu', "the client's own CPU: async for", CPU, 'less'),
    Figure('c_take_cpu', "the client's own CPU: poll, C client", CPU, 'less'),
)
