/** The test runners that generated tests can be for. */
export const testRunners = ['jest', 'vitest', 'node'] as const

export type TestRunner = (typeof testRunners)[number]

const modules: Record<TestRunner, string> = { jest: '@jest/globals', vitest: 'vitest', node: 'node:test' }

/** The imports of a test file with assertions. Without a runner, the file uses the globals of jest and vitest. */
export function formatRunnerImports(runner: TestRunner | undefined): string[] {
  if (runner === undefined) return []
  if (runner === 'node')
    return ["import assert from 'node:assert/strict'", formatRunnerImport('node', 'describe', 'test')]
  return [formatRunnerImport(runner, 'describe', 'expect', 'test')]
}

export function formatRunnerImport(runner: TestRunner, ...names: readonly string[]): string {
  return `import { ${names.join(', ')} } from '${modules[runner]}'`
}

/** A statement that compares two expressions. */
export function formatAssertion(runner: TestRunner | undefined, actual: string, expected: string): string {
  return runner === 'node'
    ? `assert.deepEqual(${actual}, ${expected})`
    : `expect(${actual}).toEqual(${expected})`
}
