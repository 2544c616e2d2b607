export default {
  testMatch: ['<rootDir>/*/dist/**/*.test.js'],
  transform: {},
  // For machines that are busy with other things; nothing here takes long.
  testTimeout: 120_000,
  maxWorkers: 2,
};
