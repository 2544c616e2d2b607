"""Takes device memory until it is refused or the function is ended."""

import gpuwhisk_sim

kept = []


def main(args):
    while True:
        kept.append(gpuwhisk_sim.Memory(256 << 20))
