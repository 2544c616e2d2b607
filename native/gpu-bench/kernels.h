// PTX of what the benchmark of a GPU runs, written by hand, so that neither nvcc nor a framework is needed. The comments are
// the stand-in's costs (docs/gpu.md), of an A100 and invented. MATMUL(name, cost) is one entry: a square matrix product in
// tiles of 16 by 16 in shared memory, for sizes that 16 divides, and a block of 16 by 16 threads for each tile.
#ifndef GPUWHISK_GPU_BENCH_KERNELS_H
#define GPUWHISK_GPU_BENCH_KERNELS_H

#define PTX_HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"

#define MATMUL_STEP(byte_a, byte_b)                                                                                   \
  "  ld.shared.f32 %f2, [%r14+" byte_a "];\n"                                                                         \
  "  ld.shared.f32 %f3, [%r15+" byte_b "];\n"                                                                         \
  "  fma.rn.f32 %f1, %f2, %f3, %f1;\n"

#define MATMUL(name, cost)                                                                                            \
  "// gpuwhisk threads=256 blocksPerSm=8 " cost "\n"                                                                  \
  ".visible .entry " name "(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"                            \
  "{\n"                                                                                                               \
  "  .reg .pred %p1;\n"                                                                                               \
  "  .reg .b32 %r<24>;\n"                                                                                             \
  "  .reg .f32 %f<8>;\n"                                                                                              \
  "  .reg .b64 %rd<16>;\n"                                                                                            \
  "  .shared .align 16 .b8 tile_a_" name "[1024];\n"                                                                  \
  "  .shared .align 16 .b8 tile_b_" name "[1024];\n"                                                                  \
  "  ld.param.u64 %rd1, [a];\n"                                                                                       \
  "  ld.param.u64 %rd2, [b];\n"                                                                                       \
  "  ld.param.u64 %rd3, [c];\n"                                                                                       \
  "  ld.param.u32 %r1, [n];\n"                                                                                        \
  "  mov.u32 %r2, %tid.x;\n"                                                                                          \
  "  mov.u32 %r3, %tid.y;\n"                                                                                          \
  "  mov.u32 %r4, %ctaid.x;\n"                                                                                        \
  "  mov.u32 %r5, %ctaid.y;\n"                                                                                        \
  "  shl.b32 %r6, %r5, 4;\n"                                                                                          \
  "  add.u32 %r6, %r6, %r3;\n"            /* row */                                                                   \
  "  shl.b32 %r7, %r4, 4;\n"                                                                                          \
  "  add.u32 %r7, %r7, %r2;\n"            /* column */                                                                \
  "  mad.lo.u32 %r8, %r6, %r1, %r2;\n"    /* row * n + x: in a */                                                     \
  "  mad.lo.u32 %r9, %r3, %r1, %r7;\n"    /* y * n + column: in b */                                                  \
  "  mul.wide.u32 %rd4, %r8, 4;\n"                                                                                    \
  "  add.s64 %rd4, %rd1, %rd4;\n"                                                                                     \
  "  mul.wide.u32 %rd5, %r9, 4;\n"                                                                                    \
  "  add.s64 %rd5, %rd2, %rd5;\n"                                                                                     \
  "  mul.wide.u32 %rd6, %r1, 64;\n"       /* sixteen rows of b */                                                     \
  "  mov.u32 %r10, tile_a_" name ";\n"                                                                                \
  "  mov.u32 %r11, tile_b_" name ";\n"                                                                                \
  "  shl.b32 %r12, %r3, 6;\n"             /* y * 64 bytes */                                                          \
  "  shl.b32 %r13, %r2, 2;\n"             /* x * 4 bytes */                                                           \
  "  add.u32 %r14, %r10, %r12;\n"         /* own row of a's tile */                                                   \
  "  add.u32 %r15, %r11, %r13;\n"         /* own column of b's tile */                                                \
  "  add.u32 %r16, %r14, %r13;\n"                                                                                     \
  "  add.u32 %r17, %r15, %r12;\n"                                                                                     \
  "  mov.f32 %f1, 0f00000000;\n"                                                                                      \
  "  mov.u32 %r18, 0;\n"                                                                                              \
  "NEXT:\n"                                                                                                           \
  "  ld.global.f32 %f4, [%rd4];\n"                                                                                    \
  "  ld.global.f32 %f5, [%rd5];\n"                                                                                    \
  "  st.shared.f32 [%r16], %f4;\n"                                                                                    \
  "  st.shared.f32 [%r17], %f5;\n"                                                                                    \
  "  bar.sync 0;\n"                                                                                                   \
  MATMUL_STEP("0", "0") MATMUL_STEP("4", "64") MATMUL_STEP("8", "128") MATMUL_STEP("12", "192")                       \
  MATMUL_STEP("16", "256") MATMUL_STEP("20", "320") MATMUL_STEP("24", "384") MATMUL_STEP("28", "448")                 \
  MATMUL_STEP("32", "512") MATMUL_STEP("36", "576") MATMUL_STEP("40", "640") MATMUL_STEP("44", "704")                 \
  MATMUL_STEP("48", "768") MATMUL_STEP("52", "832") MATMUL_STEP("56", "896") MATMUL_STEP("60", "960")                 \
  "  bar.sync 0;\n"                                                                                                   \
  "  add.s64 %rd4, %rd4, 64;\n"                                                                                       \
  "  add.s64 %rd5, %rd5, %rd6;\n"                                                                                     \
  "  add.u32 %r18, %r18, 16;\n"                                                                                       \
  "  setp.lt.u32 %p1, %r18, %r1;\n"                                                                                   \
  "  @%p1 bra NEXT;\n"                                                                                                \
  "  mad.lo.u32 %r19, %r6, %r1, %r7;\n"                                                                               \
  "  mul.wide.u32 %rd7, %r19, 4;\n"                                                                                   \
  "  add.s64 %rd7, %rd3, %rd7;\n"                                                                                     \
  "  st.global.f32 [%rd7], %f1;\n"                                                                                    \
  "  ret;\n"                                                                                                          \
  "}\n"

// y = alpha x + y, bound by the memory's bandwidth.
#define STREAM                                                                                                        \
  "// gpuwhisk threads=256 blocksPerSm=8 nsPerBlock=600 dramBytesPerBlock=3072\n"                                     \
  ".visible .entry stream(.param .u64 x, .param .u64 y, .param .u32 n)\n"                                             \
  "{\n"                                                                                                               \
  "  .reg .pred %p1;\n"                                                                                               \
  "  .reg .b32 %r<6>;\n"                                                                                              \
  "  .reg .f32 %f<4>;\n"                                                                                              \
  "  .reg .b64 %rd<6>;\n"                                                                                             \
  "  mov.u32 %r1, %ctaid.x;\n"                                                                                        \
  "  mov.u32 %r2, %ntid.x;\n"                                                                                         \
  "  mov.u32 %r3, %tid.x;\n"                                                                                          \
  "  mad.lo.u32 %r4, %r1, %r2, %r3;\n"                                                                                \
  "  ld.param.u32 %r5, [n];\n"                                                                                        \
  "  setp.ge.u32 %p1, %r4, %r5;\n"                                                                                    \
  "  @%p1 bra DONE;\n"                                                                                                \
  "  ld.param.u64 %rd1, [x];\n"                                                                                       \
  "  ld.param.u64 %rd2, [y];\n"                                                                                       \
  "  mul.wide.u32 %rd3, %r4, 4;\n"                                                                                    \
  "  add.s64 %rd4, %rd1, %rd3;\n"                                                                                     \
  "  add.s64 %rd5, %rd2, %rd3;\n"                                                                                     \
  "  ld.global.f32 %f1, [%rd4];\n"                                                                                    \
  "  ld.global.f32 %f2, [%rd5];\n"                                                                                    \
  "  fma.rn.f32 %f3, %f1, 0f3F000000, %f2;\n"                                                                         \
  "  st.global.f32 [%rd5], %f3;\n"                                                                                    \
  "DONE:\n"                                                                                                           \
  "  ret;\n"                                                                                                          \
  "}\n"

static const char kernels[] = PTX_HEAD
    // The cost is 76 ns for each element of a row, which stands in its parameter.
    MATMUL("matmul", "nsPerBlock=76 dramBytesPerBlock=16 scaledBy=3")
    MATMUL("checked_matmul", "nsPerBlock=76 scaledBy=3 cpu=matmul") STREAM;

#endif
