"""Telling systemd how it goes (sd_notify): one datagram to the socket that it names, if it names one."""

from __future__ import annotations

import contextlib
import os
import socket


def notify(state: str) -> None:
    """`state`: such as READY=1. Nothing happens outside systemd."""
    address = os.environ.get('NOTIFY_SOCKET')
    if not address:
        return
    if address.startswith('@'):
        address = '\0' + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(address)
        sender.send(state.encode())
