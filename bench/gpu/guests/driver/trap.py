"""Makes a kernel write where no memory is."""

import gpuwhisk_sim

kernels = gpuwhisk_sim.Module(
    """// gpuwhisk threads=1 blocksPerSm=1 nsPerBlock=1000 faults=1
.version 7.0
.target sm_70
.address_size 64
.visible .entry strike()
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  mov.u32 %r1, 1;
  mov.u64 %rd1, 16;
  st.global.u32 [%rd1], %r1;
  ret;
}
"""
)


def main(args):
    kernels.launch("strike", 1, threads=1)
    gpuwhisk_sim.synchronize()
    return {}
