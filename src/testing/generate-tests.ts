import { expectArgument, listRule, objectRule } from '../core/base/values.js'
import { findNonJson } from './canonical-json.js'
import { PathError } from './errors.js'
import type { MachinePath, PathStep } from './machine-path.js'
import type { PropertyStory } from './properties/check-properties.js'

/** Options for `generateJestTests`. */
export interface JestTestsOptions {
  /** The title of the `describe` block. Defaults to `every transition`. */
  title?: string
  /** Lines above the tests. They must import `replay` and what `harness` uses. */
  imports: readonly string[]
  /** The expression that creates a harness for each test. Defaults to `createHarness()`. */
  harness?: string
  /** First line of the file, as a comment. Explain how the file is generated. */
  header?: string
  /** Test runner to import from. Defaults to the globals `describe`, `test` and `expect`. */
  runner?: TestRunner
}

/**
 * Generates a test file with one test per path: events as literal JSON and the expected states. The output is
 * deterministic, so a stale file differs from a new one.
 *
 * ```ts
 * generateJestTests(paths, {
 *   imports: [`import { createMachineHarness, replay } from 'statewright/testing'`, `import { machine } from './machine.js'`],
 *   harness: 'createMachineHarness(machine)',
 * })
 * ```
 *
 * @throws {PathError} `not_json` for an event or input that JSON cannot hold
 */
export function generateJestTests(paths: readonly MachinePath[], options: JestTestsOptions): string {
  expectArgument('generateJestTests(paths)', paths, listRule('a list of paths: generatePaths(…).paths'))
  expectArgument('generateJestTests(paths, options)', options, objectRule([], 'an options object'))
  const { title = 'every transition', harness = 'createHarness()', runner } = options
  const { header = 'Generated from the statechart. Do not edit; generate it again.' } = options
  const inputs = new Map<string, string>()
  for (const path of paths) {
    const input: unknown = path.steps[0]?.event.input
    if (input !== undefined) inputs.set(path.input, formatLiteral(input, path, 'the input'))
  }
  const many = new Set(paths.map((path) => path.input)).size > 1
  const tests = paths.map((path, i) => formatTest(path, i + 1, { many, harness, runner }))
  return formatFile({ ...options, header, title }, tests, formatInputs(inputs))
}

function formatFile(
  { header, runner, imports, title }: Pick<JestTestsOptions, 'runner' | 'imports'> & Titles,
  tests: readonly string[],
  inputs: readonly string[] = [],
): string {
  return [
    `// ${toOneLine(header)}`,
    ...formatRunnerImports(runner),
    ...imports,
    '',
    ...inputs,
    `describe(${quoteText(title)}, () => {`,
    tests.join('\n\n'),
    '})',
    '',
  ].join('\n')
}

type Titles = { header: string; title: string }

function formatInputs(inputs: ReadonlyMap<string, string>): string[] {
  if (inputs.size === 0) return []
  return [
    'const inputs = {',
    ...[...inputs].map(([label, text]) => `  ${formatProperty(label)}: ${text},`),
    '}',
    '',
  ]
}

function formatTest(
  path: MachinePath,
  number: number,
  { many, harness, runner }: { many: boolean; harness: string; runner: TestRunner | undefined },
): string {
  const name = `${number}. ${many ? `${path.input}: ` : ''}${path.name}`
  return [
    `  test(${quoteText(toOneLine(name))}, async () => {`,
    '    const steps = [',
    ...path.steps.flatMap((step) => formatStep(step, path)),
    '    ]',
    `    ${formatAssertion(runner, `await replay({ steps }, ${harness})`, `{ ok: true, steps: ${path.steps.length} }`)}`,
    '  })',
  ].join('\n')
}

function formatStep(step: PathStep, path: MachinePath): string[] {
  const { value, status } = step.state
  const { label, emitted, output } = step
  const parts = [
    `event: ${formatEvent(step, path)}`,
    `state: ${formatLiteral({ value, status }, path, label)}`,
  ]
  if (emitted) parts.push(`emitted: ${formatLiteral(emitted, path, `the events that '${label}' emits`)}`)
  if ('output' in step) parts.push(`output: ${formatLiteral(output, path, 'the output')}`)
  return [`      // ${toOneLine(label)}`, `      { ${parts.join(', ')} },`]
}

function formatEvent({ event, label }: PathStep, path: MachinePath): string {
  if (event.type !== 'xstate.init') return formatLiteral(event, path, `the event '${label}'`)
  return event.input === undefined
    ? `{"type":"xstate.init"}`
    : `{"type":"xstate.init","input":inputs[${quoteText(path.input)}]}`
}

/** JSON is valid JavaScript except for `__proto__`, which would set the prototype. */
function formatLiteral(value: unknown, path: Pick<MachinePath, 'name'>, what: string): string {
  if (value === undefined) return 'undefined'
  const found = findNonJson(value)
  if (found !== undefined) {
    const text = `Path '${path.name}': ${what} contains ${found}, which JSON cannot represent. Use plain data in inputs and events.`
    throw new PathError('not_json', text, what)
  }
  return JSON.stringify(value).replaceAll('"__proto__":', '["__proto__"]:')
}

function formatProperty(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) && name !== '__proto__' ? name : `[${quoteText(name)}]`
}

export function quoteText(text: string): string {
  const escaped = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")
  return `'${escaped.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')}'`
}

function toOneLine(text: string): string {
  return text.replace(/[\r\n\u2028\u2029]+/g, ' ')
}

export const testRunners = ['jest', 'vitest', 'node'] as const

export type TestRunner = (typeof testRunners)[number]

const modules: Record<TestRunner, string> = { jest: '@jest/globals', vitest: 'vitest', node: 'node:test' }

/** Without a runner, the file uses the globals of jest and vitest. */
function formatRunnerImports(runner: TestRunner | undefined): string[] {
  if (runner === undefined) return []
  if (runner === 'node')
    return ["import assert from 'node:assert/strict'", formatRunnerImport('node', 'describe', 'test')]
  return [formatRunnerImport(runner, 'describe', 'expect', 'test')]
}

export function formatRunnerImport(runner: TestRunner, ...names: readonly string[]): string {
  return `import { ${names.join(', ')} } from '${modules[runner]}'`
}

function formatAssertion(runner: TestRunner | undefined, actual: string, expected: string): string {
  return runner === 'node'
    ? `assert.deepEqual(${actual}, ${expected})`
    : `expect(${actual}).toEqual(${expected})`
}

/** Options for `generateStoryTests`. */
export interface StoryTestsOptions extends Pick<JestTestsOptions, 'header' | 'runner'> {
  /** The title of the `describe` block. Defaults to `stories that violate a property`. */
  title?: string
  /** Lines above the tests. They must import `checkStory` and what the expressions below use. */
  imports: readonly string[]
  /** The expression for the machine. Defaults to `machine`. */
  machine?: string
  /** The expression for the properties by name. Defaults to `properties`. */
  properties?: string
  /** The expression for the options passed to `checkProperties`. Defaults to `options`. */
  options?: string
}

/**
 * Generates a test file with one test per counterexample from `checkProperties`. Each test fails as long as the machine
 * can still run that story.
 *
 * ```ts
 * const { report } = checkProperties(machine, { report: never('open') }, { alphabet })
 * generateStoryTests(report.counterexample ? [report.counterexample] : [], {
 *   imports: [`import { checkStory } from 'statewright/testing'`, `import { machine, properties, options } from './properties/machine.js'`],
 * })
 * ```
 *
 * @throws {PathError} `not_json` for an event or input that JSON cannot hold
 */
export function generateStoryTests(stories: readonly PropertyStory[], options: StoryTestsOptions): string {
  expectArgument(
    'generateStoryTests(stories)',
    stories,
    listRule('a list of counterexamples of checkProperties(…)'),
  )
  expectArgument('generateStoryTests(stories, options)', options, objectRule([], 'an options object'))
  const { title = 'stories that violate a property', machine = 'machine' } = options
  const { properties = 'properties', options: space = 'options', runner } = options
  const { header = 'Generated from counterexamples of checkProperties.' } = options
  const tests = stories.map((story, i) => {
    const call = `checkStory(${machine}, ${properties}[${quoteText(story.property)}], story, ${space})`
    return [
      `  // ${toOneLine(story.reason)}`,
      `  test(${quoteText(toOneLine(`${i + 1}. ${story.property}`))}, () => {`,
      '    const story = {',
      ...formatInput(story),
      ...formatEvents('steps', story.path.steps.slice(1), story),
      ...(story.loop ? formatEvents('loop', story.loop, story) : []),
      '    }',
      `    ${formatAssertion(runner, call, '{ holds: true, message: null }')}`,
      '  })',
    ].join('\n')
  })
  return formatFile({ ...options, header, title }, tests)
}

function formatInput({ path }: PropertyStory): string[] {
  const input: unknown = path.steps[0]?.event.input
  return input === undefined ? [] : [`      input: ${formatLiteral(input, path, 'the input')},`]
}

function formatEvents(key: 'steps' | 'loop', steps: readonly PathStep[], { path }: PropertyStory): string[] {
  if (steps.length === 0) return [`      ${key}: [],`]
  return [
    `      ${key}: [`,
    ...steps.flatMap(({ event, label }) => [
      `        // ${toOneLine(label)}`,
      `        ${formatLiteral(event, path, `the event '${label}'`)},`,
    ]),
    '      ],',
  ]
}
