"""A client that takes every place in its queue: python -m tests.cluster.flood KUBECONFIG NAMESPACE

Each connection asks to create an object. When the API server has given it a place it asks for the
body, which comes some seconds later; so long the place is taken. That costs neither side any work,
so whoever else waits, waits for a place and not for the processor. It ends when its standard input
does.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CONNECTIONS = 32
HOLD_SECONDS = 3.0


async def ask(url: str, context: ssl.SSLContext, token: str, namespace: str) -> None:
    """Ask once, slowly. What cannot be created (it has no name) leaves nothing behind."""
    host = urlsplit(url)
    reader, writer = await asyncio.open_connection(host.hostname, host.port, ssl=context)
    try:
        head = (
            f"POST /api/v1/namespaces/{namespace}/configmaps HTTP/1.1",
            f"Host: {host.netloc}",
            f"Authorization: Bearer {token}",
            "Content-Type: application/json",
            "Content-Length: 2",
            "Expect: 100-continue",
            "Connection: close",
        )
        writer.write("\r\n".join((*head, "", "")).encode())
        await writer.drain()
        if b" 100 " in await reader.readline():
            await asyncio.sleep(HOLD_SECONDS)
            writer.write(b"{}")
            await writer.drain()
        await reader.read()
    finally:
        writer.close()


async def again_and_again(*how: Any) -> None:
    while True:
        try:
            await ask(*how)
        except (OSError, ssl.SSLError):
            await asyncio.sleep(0.1)  # a full backlog refuses a connection: that is a flood too


async def flood(config: dict[str, Any], namespace: str) -> None:
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=ca)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    how = (cluster["server"], context, user["token"], namespace)
    tasks = [asyncio.create_task(again_and_again(*how)) for _ in range(CONNECTIONS)]
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(flood(json.loads(Path(sys.argv[1]).read_text()), sys.argv[2]))
