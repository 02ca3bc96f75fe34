import { availableParallelism } from 'node:os'

/** Suites that need more than Node, or much time. `STATEWRIGHT_SUITE=postgres` takes one in. */
const apart = ['postgres', 'crash', 'browser', 'ai-sdk'].filter(
  (suite) => suite !== process.env.STATEWRIGHT_SUITE,
)

/** The suite of the chat plays all pages once more with the client of `ai` 7. */
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
  // For what hangs: nothing waits for real time, and a machine may have much else to do.
  testTimeout: 60_000,
  // Jest leaves a core to itself, which on two is half of them; and each worker waits for a fifth of its time, mostly for processes.
  maxWorkers: Math.ceil(1.5 * availableParallelism()),
  workerIdleMemoryLimit: '600MB',
}
