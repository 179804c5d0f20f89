"""Platforms of public measurements of collectives, and the shipped laws that speak of them."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """Names that files have for a platform: regular expressions of which one matches."""

    laws: str  # the set that ships
    description: str
    names: tuple[str, ...]


DOMAINS = (
    Platform(laws="a100-nvswitch", description="8 A100 SXM on NVSwitch", names=("a100_sxm",)),
    Platform(
        laws="a100-ndv4", description="Azure NDv4: 8 A100-40GB on NVSwitch, NCCL 2.8 to 2.10", names=("Azure NDv4",)
    ),
    Platform(
        laws="h100-nvswitch",
        description="8 H100 SXM on NVSwitch",
        names=("h100_sxm", "sm_90", "example-cluster0", "smc 8x H100"),
    ),
    Platform(laws="h200-nvswitch", description="8 H200 SXM on NVSwitch", names=("h200_sxm",)),
    Platform(
        laws="b200-nvswitch",
        description="8 B200 SXM on NVSwitch",
        names=("b200_sxm", "sm_100_B200", "Supermicro.*B200"),
    ),
    Platform(laws="b300-nvswitch", description="8 B300 SXM on NVSwitch", names=("b300_sxm",)),
    Platform(
        laws="gb200-nvl72",
        description="72 GB200 of a rack in one NVLink domain",
        names=("gb200", "sm_100_GB200", "CoreWeave GB200"),
    ),
    Platform(
        laws="gb300-nvl72",
        description="72 GB300 of a rack in one NVLink domain",
        names=("gb300", "sm_103", "OCI GB300"),
    ),
    Platform(laws="mi355x-xgmi", description="8 MI350X or MI355X on xGMI", names=("gfx950", "OCI MI355X")),
    Platform(laws="l40s-pcie", description="8 L40S on PCIe", names=("l40s",)),
    Platform(laws="rtx-pro-6000-pcie", description="8 RTX PRO 6000 on PCIe", names=("rtx_pro_6000_server",)),
    Platform(laws="arc-b60-pcie", description="4 Arc Pro B60 on PCIe, oneCCL", names=("b60",)),
)

NETWORKS = (
    Platform(
        laws="h100-infiniband",
        description="hosts of 8 H100 with one 400 Gb/s card each",
        names=("example-cluster01", "CoreWeave H100"),
    ),
    Platform(
        laws="h100-shared-cards",
        description="hosts of 8 H100 that share fewer and slower cards",
        names=("example-cluster00",),
    ),
    Platform(laws="aws-p5-efa", description="hosts of 8 H100 with 32 x 100 Gb/s EFA", names=("AWS p5",)),
    Platform(laws="aws-p4de-efa", description="hosts of 8 A100-80GB with 4 x 100 Gb/s EFA", names=("AWS p4de",)),
    Platform(
        laws="gcp-a3-high-tcpx",
        description="hosts of 8 H100 with 4 x 200 Gb/s GPUDirect-TCPX",
        names=(r"GCP A3 High \(",),
    ),
    Platform(
        laws="gcp-a3-high-gke",
        description="hosts of 8 H100 with 4 x 200 Gb/s GPUDirect-TCPX on GKE",
        names=("GCP A3 High on GKE",),
    ),
    Platform(laws="oci-h100-roce", description="hosts of 8 H100 with 16 x 200 Gb/s RoCE", names=("OCI BM.GPU.H100",)),
    Platform(laws="oci-a100-roce", description="hosts of 8 A100-40GB on RoCE", names=("OCI BM.GPU4",)),
    Platform(laws="dgx2-infiniband", description="DGX-2: hosts of 16 V100", names=("16 x DGX-2",)),
    Platform(laws="v100-one-card", description="hosts of 8 V100 with one 100 Gb/s card", names=("8 nodes x 8 V100",)),
    Platform(laws="tencent-vms", description="virtual machines of 2 GPUs, cards not named", names=("Tencent Cloud",)),
    Platform(
        laws="gb200-racks", description="racks of 72 GB200, 4 x 400 Gb/s cards per tray", names=("CoreWeave GB200",)
    ),
)

#: Words of a platform's name that say which laws are nearest, where no set is of the platform; the first one counts.
_NEAREST_DOMAIN = (
    ("gb300", "gb300-nvl72"), ("gb200", "gb200-nvl72"), ("b300", "b300-nvswitch"), ("b200", "b200-nvswitch"),
    ("h200", "h200-nvswitch"), ("h20", "h200-nvswitch"), ("h800", "h100-nvswitch"), ("mi3", "mi355x-xgmi"),
    ("gfx9", "mi355x-xgmi"), ("a100", "a100-nvswitch"), ("v100", "a100-nvswitch"), ("l40", "l40s-pcie"),
    ("rtx", "rtx-pro-6000-pcie"), ("l4", "l40s-pcie"), ("", "h100-nvswitch"),
)  # fmt: skip
_NEAREST_NETWORK = (
    ("a3 mega", "h100-infiniband"), ("a3", "gcp-a3-high-tcpx"), ("p4d", "aws-p4de-efa"), ("p5", "aws-p5-efa"),
    ("tcpx", "gcp-a3-high-tcpx"), ("nvl72", "gb200-racks"), ("v100", "v100-one-card"), ("a100", "oci-a100-roce"),
    ("", "h100-infiniband"),
)  # fmt: skip


def laws_of(platform: str, *, is_one_domain: bool) -> tuple[str, bool]:
    """Return the name of the laws of a platform, and whether they are its own (else the nearest)."""
    for one in DOMAINS if is_one_domain else NETWORKS:
        if any(re.match(name, platform) for name in one.names):
            return one.laws, True
    lowered = platform.lower()
    nearest = _NEAREST_DOMAIN if is_one_domain else _NEAREST_NETWORK
    return next(laws for word, laws in nearest if word in lowered), False
