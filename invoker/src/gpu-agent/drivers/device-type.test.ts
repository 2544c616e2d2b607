import { expect, test } from '@jest/globals';
import { deviceType } from './nvidia-driver.js';

test.each([
  ['NVIDIA A100-SXM4-40GB', 'a100-40'],
  ['NVIDIA A100 80GB PCIe', 'a100-80'],
  ['NVIDIA A100-SXM4-40GB (simulated)', 'a100-40'],
  ['NVIDIA H100 80GB HBM3', 'h100'],
  ['NVIDIA H200', 'h200'],
  ['NVIDIA GeForce RTX 3090', 'rtx3090'],
  ['NVIDIA GeForce RTX 4090', 'rtx-4090'],
  ['Tesla V100-SXM2-16GB', 'v100-sxm2-16gb'],
  ['NVIDIA L4', 'l4'],
])('%s is called %s', (name, type) => {
  expect(deviceType(name)).toBe(type);
});
