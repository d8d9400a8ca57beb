"""Leave in a built layer only the descriptions of those AWS services that Plimsoll calls.

botocore describes four hundred services. Before it makes the first client it looks into the folder of each and reads
the endpoints of all, and every cold start waits for that:

    python trim_clients.py .aws-sam/build/CoreLayer
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sys
from pathlib import Path

ADAPTERS = Path(__file__).parents[2].glob("layers/*/*/adapters/aws.py")
CALLED = {name for path in ADAPTERS for name in re.findall(r'_client\("(.+)"\)', path.read_text())}


def trim(data: Path) -> None:
    """Remove the other services from botocore's data."""
    for folder in data.iterdir():
        if folder.is_dir() and folder.name not in CALLED:
            shutil.rmtree(folder)
    models = [
        json.loads(gzip.decompress(path.read_bytes()))
        for path in data.glob("*/*/service-2.json.gz")
    ]
    kept = {model["metadata"]["endpointPrefix"] for model in models}
    path = data / "endpoints.json"
    endpoints = json.loads(path.read_text(encoding="utf-8"))
    for partition in endpoints["partitions"]:
        services = partition["services"]
        partition["services"] = {name: services[name] for name in services.keys() & kept}
    path.write_text(json.dumps(endpoints), encoding="utf-8")


if __name__ == "__main__":
    trim(Path(sys.argv[1], "python", "botocore", "data"))
