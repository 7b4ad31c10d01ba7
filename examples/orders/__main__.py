"""`python -m examples.orders`: the story against a running server, in about a quarter of a minute."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time

import acklog
from acklog.client import Unreachable

from .story import Pace, tell


async def main() -> None:
    parser = argparse.ArgumentParser(prog='examples.orders')
    parser.add_argument('--server', default='localhost:9092', help='HOST:PORT of acklog serve (%(default)s)')
    parser.add_argument('--http', default='http://127.0.0.1:8080', help='where its HTTP API is (%(default)s)')
    options = parser.parse_args()
    logging.getLogger('acklog.worker').setLevel(logging.ERROR)  # it tells of each failed call, with its traceback
    pace = Pace('500ms,1s,2s', 8, 0.25, lambda: round(time.time() * 1000), asyncio.sleep)
    begun = time.monotonic()
    async with acklog.connect(options.server) as client:
        await tell(client, options.http, pace, lambda words: print(f'{time.monotonic() - begun:5.1f} s  {words}'))


if __name__ == '__main__':
    try:
        asyncio.run(main())
    except Unreachable as error:
        sys.exit(f'{error} ("acklog serve" starts one; --server and --http name one elsewhere)')
