"""Kernels whose blocks fill every SM many times over: how many a second."""

import ctypes
import time

import gpuwhisk_sim

BLOCKS = 132 * 8 * 100  # A hundred waves on the largest device that the kit knows: 10 ms.
# Unlike the example kernel spin, it keeps no processor of the caller busy on the stand-in.
kernels = gpuwhisk_sim.Module(
    """// gpuwhisk threads=256 blocksPerSm=8 nsPerBlock=100000 scaledBy=0
.version 7.0
.target sm_70
.address_size 64
.visible .entry wait(.param .u64 times)
{
  .reg .pred %p1;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [times];
  mul.lo.u64 %rd1, %rd1, 100000;
  mov.u64 %rd2, %globaltimer;
  add.u64 %rd1, %rd1, %rd2;
WAIT:
  mov.u64 %rd3, %globaltimer;
  setp.lt.u64 %p1, %rd3, %rd1;
  @%p1 bra WAIT;
  ret;
}
"""
)


def main(args):
    count, begin = 0, time.perf_counter()
    end = begin + args.get("seconds", 0)
    while count == 0 or time.perf_counter() < end:
        # So many that the device has work while a busy machine wakes this process up.
        for _ in range(20):
            kernels.launch("wait", BLOCKS, ctypes.c_uint64(1))
        gpuwhisk_sim.synchronize()
        count += 20
    return {"perS": count / (time.perf_counter() - begin)}
