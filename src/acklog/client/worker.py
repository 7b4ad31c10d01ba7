"""A subscriber made of a function: it takes records, calls the function for each, and settles them by how that ends.

    @acklog.worker('billing', ['orders'], concurrency=20)
    async def charge(record: acklog.Received) -> None:
        ...

    charge.run('localhost:9092')

Strategy: as many records are taken as there are calls free, so that none waits here while another member has nothing to
do. A return accepts, `Reject` rejects, any other exception releases with a delay that grows with the deliveries. When
told to stop it takes no more, waits for what runs, and gives back the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import random
import signal
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from acklog.client.arguments import check_begin, check_seconds, check_whole
from acklog.client.client import Client
from acklog.client.errors import AcknowledgementsRefused, Unsupported
from acklog.client.named import check_names
from acklog.client.received import Received
from acklog.client.subscription import Subscription
from acklog.client.times import milliseconds

logger = logging.getLogger('acklog.worker')

Handler = Callable[[Received], Awaitable[None] | None]

BACKOFF = (1.0, 5.0, 30.0, 120.0, 600.0)
JITTER = 0.1
MOST_WORDS = 300  # characters of an exception


class Reject(Exception):
    """Raised by a worker's function: nobody can process this record. `reason`: your words about it."""

    def __init__(self, reason: str = '') -> None:
        super().__init__(reason)
        self.reason = str(reason)  # whatever it was: a record must not stay held for a wrong word


class Worker:
    """A function with what it subscribes to; calling it calls the function.

    `concurrency`: calls at the same time, 1 or more; a function that is not a coroutine runs in a thread. `backoff`:
    seconds until a record whose call failed comes again, by its deliveries, the last one for all further ones, each a
    tenth more or less; None: the group's own. `drain`: seconds that calls have to end when it stops. `begin`: where the
    group begins if it does not exist yet, as for `Subscription`. Records are held for as long as their call runs.
    """

    def __init__(
        self,
        handler: Handler,
        group: str,
        topics: Sequence[str],
        *,
        concurrency: int = 10,
        backoff: Sequence[float] | None = BACKOFF,
        drain: float = 30.0,
        begin: str | None = None,
    ) -> None:
        check_names(group, topics)
        check_whole('concurrency', concurrency, 1)
        check_seconds('drain', drain)
        check_begin(begin)
        if not callable(handler):
            raise TypeError(f'a worker is made of a function, not {handler!r}')
        if backoff is not None:
            _check(backoff)
        self.handler, self.group, self.topics = handler, group, list(topics)
        self.concurrency, self.backoff, self.drain = concurrency, backoff, drain
        self.begin = begin
        self._running: set[asyncio.Task[None]] = set()
        self._stop: asyncio.Event | None = None
        self._threads: ThreadPoolExecutor | None = None

    def __call__(self, record: Received) -> Awaitable[None] | None:
        return self.handler(record)

    def run(self, bootstrap: str = 'localhost:9092', *, timeout: float = 10.0) -> None:
        """Work until SIGTERM or SIGINT, then finish what is running. Errors as `serve`."""
        asyncio.run(self._run(Client(bootstrap, timeout=timeout)))

    async def _run(self, client: Client) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError):  # Windows: an interrupt ends it at once
                loop.add_signal_handler(number, self.stop)
        async with client:
            await self.serve(client)

    async def serve(self, client: Client) -> None:
        """Work until `stop`, or until this is cancelled; then finish what is running. Raises Unsupported where the
        server cannot release after a time and a backoff was asked for, and what `Subscription.poll` raises."""
        self._stop = asyncio.Event()
        subscription = client.subscribe(
            self.group, self.topics, max_records=self.concurrency, strict=True, begin=self.begin
        )
        try:
            async with subscription:
                self._check_backoff(subscription)
                try:
                    await self._take(subscription, self._stop)
                finally:
                    await self._finish()
        except AcknowledgementsRefused as refused:
            logger.warning('some records were done too late: %s', refused)
        finally:
            self._stop = None
            if self._threads is not None:
                self._threads.shutdown(wait=False)
                self._threads = None

    def stop(self) -> None:
        """Take no more; `serve` returns when what is running is done. For the loop that it runs in."""
        if self._stop is not None:
            self._stop.set()

    def _check_backoff(self, subscription: Subscription) -> None:
        if not subscription.knows_times and self.backoff is not None and self.backoff is not BACKOFF:
            raise Unsupported('the server is not acklog: it has no backoff that a worker names (backoff=None goes)')

    # --- taking

    async def _take(self, subscription: Subscription, stop: asyncio.Event) -> None:
        stopping = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                free = self.concurrency - len(self._running)
                if free:
                    polling = asyncio.create_task(subscription.poll(max_records=free))
                    await self._until(polling, stopping)
                    if polling.done():
                        for record in polling.result():
                            self._start(subscription, record)
                    else:
                        polling.cancel()
                        await asyncio.gather(polling, return_exceptions=True)
                else:
                    await asyncio.wait([*self._running, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    async def _until(self, polling: asyncio.Task[Any], stopping: asyncio.Task[Any]) -> None:
        try:
            await asyncio.wait([polling, stopping], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            polling.cancel()
            raise

    def _start(self, subscription: Subscription, record: Received) -> None:
        task = asyncio.create_task(self._work(subscription, record))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _finish(self) -> None:
        """Wait for what is running, then end it: what was not settled is given back, and does not count as failed."""
        running = list(self._running)
        if running:
            await asyncio.wait(running, timeout=self.drain)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    # --- one record

    async def _work(self, subscription: Subscription, record: Received) -> None:
        try:
            await self._call(record)
        except Reject as reject:
            record.reject(reason=reject.reason if subscription.knows_times else '')
        except BaseException as error:  # whatever the user's function raises: the record comes again
            if isinstance(error, SystemExit | KeyboardInterrupt | GeneratorExit) or _is_being_cancelled():
                raise
            after = self._delay(subscription, record)
            when = '' if after is None else f', to come again in {after:.1f} s'
            logger.warning(
                '%s failed (delivery %d), handed back%s', record.place, record.deliveries, when, exc_info=error
            )
            record.release(after=after, reason=_words(error) if subscription.knows_times else '')
        else:
            record.accept()

    async def _call(self, record: Received) -> None:
        if inspect.iscoroutinefunction(self.handler):
            await self.handler(record)
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.concurrency, thread_name_prefix='acklog worker')
        result = await asyncio.get_running_loop().run_in_executor(self._threads, self._call_in_thread, record)
        if result is not None:
            await result

    def _call_in_thread(self, record: Received) -> Awaitable[None] | None:
        try:
            return self.handler(record)
        except StopIteration as error:  # a future takes anything but that, and would never be done
            raise RuntimeError('the function raised StopIteration') from error

    def _delay(self, subscription: Subscription, record: Received) -> float | None:
        """Seconds until the record is to come again; None where the group's backoff says, or nobody can."""
        if self.backoff is None or not subscription.knows_times:
            return None
        seconds = self.backoff[min(record.deliveries, len(self.backoff)) - 1]
        return seconds * random.uniform(1 - JITTER, 1 + JITTER)


def _check(backoff: Sequence[object]) -> None:
    """Each delay is looked at here: where a record is to be handed back it is too late for an error."""
    try:
        fits = bool(backoff) and all(
            isinstance(seconds, int | float) and milliseconds(seconds * (1 + JITTER)) >= 0 for seconds in backoff
        )
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise ValueError(f'a backoff is some seconds, 0 or more each, not {backoff!r}')


def _is_being_cancelled() -> bool:
    """Not so where the function itself raises CancelledError, as when it awaits something that was cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _words(error: BaseException) -> str:
    name = type(error).__name__
    try:
        return f'{name}: {error}'[:MOST_WORDS]
    except Exception:  # of the user's own class
        return name


def worker(
    group: str,
    topics: Sequence[str] | str,
    *,
    concurrency: int = 10,
    backoff: Sequence[float] | None = BACKOFF,
    drain: float = 30.0,
    begin: str | None = None,
) -> Callable[[Handler], Worker]:
    """Make a `Worker` of a function, with these options of it."""

    def decorate(handler: Handler) -> Worker:
        names = [topics] if isinstance(topics, str) else list(topics)
        return Worker(handler, group, names, concurrency=concurrency, backoff=backoff, drain=drain, begin=begin)

    return decorate
