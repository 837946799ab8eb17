"""The listening socket, and how it is closed so that nobody who has entered is turned away."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct

HALLWAY_SECONDS = 0.3  # for connections that are being made when the door closes to new ones
ATTACH_FILTER = 26  # SO_ATTACH_FILTER of Linux
# A packet that asks for a new connection (SYN without ACK) is dropped; all others pass.
#   load byte 13, the flags; and with SYN | ACK; if it is SYN drop, else accept
WITHOUT_NEW = (
    (0x30, 0, 0, 13),
    (0x54, 0, 0, 0x12),
    (0x15, 0, 1, 0x02),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 0xFFFFFFFF),
)


def close_to_new(door: socket.socket) -> None:
    """Take no new connections, while those that are made already can still be accepted.

    Closing a listening socket resets whoever waits behind it, and with a request under way that
    is a failed request. So first new ones are kept out; their clients try again a second later,
    here in vain, behind a proxy elsewhere. Where the system cannot do this, nothing happens.
    """
    program = b"".join(struct.pack("HBBI", *step) for step in WITHOUT_NEW)
    steps = ctypes.create_string_buffer(program)
    described = struct.pack("HP", len(WITHOUT_NEW), ctypes.addressof(steps))
    with contextlib.suppress(OSError):
        door.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, described)
