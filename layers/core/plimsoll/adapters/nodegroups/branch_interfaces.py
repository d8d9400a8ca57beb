"""How many branch interfaces a node of an instance type has: `vpc.amazonaws.com/pod-eni`, for security groups for pods.

No API of AWS tells it. The table is that of the controller which gives nodes the resource, as of March 2026:
https://github.com/aws/amazon-vpc-resource-controller-k8s/blob/master/pkg/aws/vpc/limits.go. Families whose sizes do not
contradict each other share a row. Of a type that is newer, or has no trunk interface, it tells nothing.
"""

from __future__ import annotations

from functools import cache
from typing import Final

POD_ENI: Final = "vpc.amazonaws.com/pod-eni"
_TABLE: Final = """
a1 i7i: large=9 medium=10 xlarge=18 2xlarge=38 metal=54 4xlarge=54 8xlarge=84 12xlarge=84
    16xlarge=107 24xlarge=107 48xlarge=107 metal-24xl=107 metal-48xl=107;
c5 c5a c5ad c5d c6g c6gd c6gn c7g c7gd c7gn c8g c8gd g5g i4g i8g im4gn is4gen m5a m5ad m5d
    m5dn m5n m6g m6gd m7g m7gd m8g m8gd r5a r5ad r5b r5d r5dn r5n r6g r6gd r7g r7gd r8g r8gd trn1n
    vt1 x8g: medium=4 large=9 xlarge=18 2xlarge=38 3xlarge=38 4xlarge=54 6xlarge=54 8xlarge=54
    9xlarge=54 12xlarge=54 metal=107 16xlarge=107 18xlarge=107 24xlarge=107 48xlarge=107
    metal-24xl=107 metal-48xl=107 32xlarge=120;
c5n c8a c8i c8id gr6f m8a m8i m8id r8a r8i r8id u-3tb1 u7i-12tb u7i-6tb u7i-8tb x8i: medium=4
    56xlarge=6 large=9 xlarge=18 2xlarge=38 4xlarge=54 9xlarge=54 8xlarge=82 32xlarge=98
    48xlarge=98 64xlarge=98 96xlarge=98 metal-48xl=98 metal-96xl=98 16xlarge=106 24xlarge=106
    metal-24xl=106 metal=107 18xlarge=107 112xlarge=107 224xlarge=107 12xlarge=110;
c6a c6i c6id c7a c7i dl2q f2 g6 gr6 inf2 m6a m6i m6id m7a m7i p3dn r6a r6i r6id r7a r7i r7iz
    u7in-16tb u7in-24tb u7in-32tb x2idn: medium=4 large=9 xlarge=18 2xlarge=38 4xlarge=54
    6xlarge=84 8xlarge=84 224xlarge=106 metal=107 16xlarge=107 24xlarge=107 32xlarge=107
    48xlarge=107 metal-16xl=107 metal-24xl=107 metal-32xl=107 metal-48xl=107 12xlarge=114;
c6in m6idn m6in p5e p5en p6-b200 p6-b300 r6idn r6in: large=9 xlarge=18 2xlarge=38 4xlarge=54
    8xlarge=84 metal=106 32xlarge=106 16xlarge=107 24xlarge=107 12xlarge=114 48xlarge=120;
c7i-flex m7i-flex: large=3 xlarge=8 2xlarge=18 4xlarge=34 8xlarge=54 16xlarge=107
    12xlarge=114;
c8gb c8gn m8gb m8gn r8gb r8gn: medium=4 large=9 xlarge=18 2xlarge=38 12xlarge=50 8xlarge=52
    4xlarge=54 24xlarge=98 48xlarge=98 16xlarge=106;
c8i-flex m8i-flex r8i-flex: large=3 xlarge=8 2xlarge=18 4xlarge=34 8xlarge=52 16xlarge=106
    12xlarge=110;
d3: xlarge=42 2xlarge=92 4xlarge=118 8xlarge=119;
d3en: xlarge=24 2xlarge=58 4xlarge=118 6xlarge=118 8xlarge=118 12xlarge=119;
dl1 p4d p4de x2gd: large=9 medium=10 xlarge=18 2xlarge=38 4xlarge=54 8xlarge=54 12xlarge=54
    24xlarge=62 metal=107 16xlarge=107;
g4ad: 16xlarge=6 8xlarge=10 4xlarge=11 xlarge=12 2xlarge=12;
g4dn: xlarge=39 2xlarge=39 12xlarge=54 8xlarge=58 4xlarge=59 metal=107 16xlarge=118;
g5: xlarge=4 2xlarge=17 4xlarge=34 8xlarge=84 12xlarge=107 24xlarge=107 16xlarge=114
    48xlarge=115;
g6e g6f: large=10 xlarge=18 2xlarge=38 4xlarge=54 48xlarge=82 8xlarge=84 24xlarge=102
    16xlarge=107 12xlarge=112;
g7e: 2xlarge=120 4xlarge=120 8xlarge=120 12xlarge=120 24xlarge=120 48xlarge=120;
i3: large=0 xlarge=0 2xlarge=0 4xlarge=0 8xlarge=0 16xlarge=0 metal=120;
i3en: large=5 xlarge=12 2xlarge=28 3xlarge=38 6xlarge=54 12xlarge=54 metal=107 24xlarge=107;
i4i: large=0 xlarge=6 2xlarge=26 4xlarge=52 24xlarge=105 8xlarge=112 12xlarge=112 metal=120
    16xlarge=120 32xlarge=120;
i7ie mac-m4 mac-m4max mac-m4pro mac1 mac2 mac2-m1ultra mac2-m2 mac2-m2pro: metal=6 large=19
    xlarge=27 2xlarge=27 3xlarge=27 6xlarge=54 12xlarge=54 18xlarge=107 24xlarge=107 48xlarge=107
    metal-24xl=107 metal-48xl=107;
i8ge: large=19 3xlarge=25 xlarge=27 2xlarge=27 12xlarge=50 6xlarge=52 48xlarge=98
    metal-48xl=98 18xlarge=106 24xlarge=106 metal-24xl=106;
inf1: xlarge=38 2xlarge=38 6xlarge=54 24xlarge=111;
m5 r5: large=9 xlarge=18 2xlarge=38 4xlarge=54 8xlarge=54 12xlarge=54 16xlarge=107
    24xlarge=107 metal=120;
m5zn x2iezn: large=13 xlarge=29 2xlarge=62 3xlarge=92 metal=107 12xlarge=107 4xlarge=114
    6xlarge=114 8xlarge=114;
m8azn p5 trn1 x8aedz: medium=3 large=8 2xlarge=17 xlarge=18 3xlarge=34 6xlarge=54 4xlarge=58
    32xlarge=82 12xlarge=106 24xlarge=106 metal-12xl=106 metal-24xl=106 48xlarge=120;
x2iedn: xlarge=11 2xlarge=27 4xlarge=54 metal=107 16xlarge=107 24xlarge=107 32xlarge=107
    8xlarge=114;
z1d: large=13 xlarge=28 3xlarge=54 6xlarge=54 2xlarge=58 metal=107 12xlarge=107;
"""
"""Families, and their sizes with how many each has."""


def branch_interfaces(instance_type: str) -> int:
    """Return how many a node of this type has, as far as the table tells; else 0."""
    family, _, size = instance_type.partition(".")
    return _by_family().get(family, {}).get(size, 0)


@cache
def _by_family() -> dict[str, dict[str, int]]:
    """Read the table, at the first use."""
    rows = (row.partition(":") for row in _TABLE.split(";"))
    return {
        family: {
            size: int(count) for size, _, count in (one.partition("=") for one in sizes.split())
        }
        for families, _, sizes in rows
        for family in families.split()
    }
