export default {
  testMatch: ['<rootDir>/*/dist/**/*.test.js'],
  transform: {},
  testTimeout: 30_000,
  maxWorkers: 2,
};
