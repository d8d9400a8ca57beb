"""Unit tests open no sockets."""

from __future__ import annotations

import socket

import pytest
import pytest_socket


def test_a_unit_test_that_opens_a_socket_fails():
    with (
        pytest.warns(UserWarning, match="tried to use socket"),
        pytest.raises(pytest_socket.SocketBlockedError),
    ):
        socket.create_connection(("127.0.0.1", 9))
