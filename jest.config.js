import { availableParallelism } from 'node:os'

/** Suites that need more than Node, or a long time. `STATEWRIGHT_SUITE=postgres` includes one. */
const apart = ['postgres', 'crash', 'browser', 'ai-sdk'].filter(
  (suite) => suite !== process.env.STATEWRIGHT_SUITE,
)

/** The chat suite repeats all pages with the client of `ai` 7. */
const newestAi = process.env.AI_NEWEST === 'installed' && {
  '^ai$': '<rootDir>/test/ui/newest/node_modules/ai/dist/index.js',
}

/** Jest runs the TypeScript sources as ES modules; swc only strips the types. */
export default {
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/', ...apart.map((suite) => `<rootDir>/test/${suite}/`)],
  setupFilesAfterEnv: ['<rootDir>/test/support/set-runs.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { ...newestAi, '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2022', parser: { syntax: 'typescript' } }, module: { type: 'es6' } },
    ],
  },
  // Only for hangs. No test waits for real time, and the machine may be busy.
  testTimeout: 60_000,
  // Jest reserves one core for itself, which is half of a two-core machine. Each worker waits a fifth of its time, mostly for processes.
  maxWorkers: Math.ceil(1.5 * availableParallelism()),
  workerIdleMemoryLimit: '600MB',
}
