export default {
  testMatch: ['<rootDir>/*/dist/**/*.test.js'],
  transform: {},
  // Packages for actions, whose names are not the repository's business.
  modulePathIgnorePatterns: ['<rootDir>/build/'],
  // For machines that are busy with other things; nothing here takes long.
  testTimeout: 120_000,
  maxWorkers: 2,
  testSequencer: '<rootDir>/scripts/test-sequencer.mjs',
};
