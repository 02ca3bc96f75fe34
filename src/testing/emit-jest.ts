import { expectArgument, listRule, objectRule } from '../core/base/expect-argument.js'
import { PathError } from './errors.js'
import type { MachinePath, PathStep } from './machine-path.js'
import { formatAssertion, formatRunnerImports, type TestRunner } from './test-runner.js'

/** How the test file is written. */
export interface JestTestsOptions {
  /** The name of the `describe` block. Default `every transition`. */
  title?: string
  /** The lines above the tests; they must bring `replay` and what `harness` uses into scope. */
  imports: readonly string[]
  /** An expression that makes a fresh harness for one test. Default `createHarness()`. */
  harness?: string
  /** The first line, as a comment. Say how the file is made. */
  header?: string
  /** The test runner, whose functions are imported. Default: the globals `describe`, `test` and `expect`. */
  runner?: TestRunner
}

/**
 * Writes a test file: one test a path, each event as literal JSON and the state that it must lead to. The same
 * paths give the same text, so a stale file is one that differs.
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
  expectArgument('generateJestTests(paths, options)', options, objectRule([], 'an object of options'))
  const { title = 'every transition', harness = 'createHarness()', runner } = options
  const { header = 'Generated from the statechart. Do not edit; generate it again.' } = options
  const inputs = new Map<string, string>()
  for (const path of paths) {
    const input: unknown = path.steps[0]?.event.input
    if (input !== undefined) inputs.set(path.input, formatLiteral(input, path, 'the input'))
  }
  const many = new Set(paths.map((path) => path.input)).size > 1
  return [
    `// ${toOneLine(header)}`,
    ...formatRunnerImports(runner),
    ...options.imports,
    '',
    ...formatInputs(inputs),
    `describe(${quoteText(title)}, () => {`,
    paths.map((path, i) => formatTest(path, i + 1, { many, harness, runner })).join('\n\n'),
    '})',
    '',
  ].join('\n')
}

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
  const name = `${number}. ${many ? `with ${path.input}: ` : ''}${path.name}`
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
  const comment = `      // ${toOneLine(step.label)}`
  const state = formatLiteral({ value, status }, path, step.label)
  const more = [
    ...(step.emitted ? [`emitted: ${formatLiteral(step.emitted, path, `what '${step.label}' emits`)}`] : []),
    ...('output' in step ? [`output: ${formatLiteral(step.output, path, 'the output') ?? 'undefined'}`] : []),
  ]
  return [
    comment,
    `      { ${[`event: ${formatEvent(step, path)}`, `state: ${state}`, ...more].join(', ')} },`,
  ]
}

function formatEvent({ event, label }: PathStep, path: MachinePath): string {
  if (event.type !== 'xstate.init') return formatLiteral(event, path, `the event '${label}'`)
  return event.input === undefined
    ? `{"type":"xstate.init"}`
    : `{"type":"xstate.init","input":inputs[${quoteText(path.input)}]}`
}

/** JSON is a literal of the language but for one key, which would set the prototype. */
export function formatLiteral(value: unknown, path: Pick<MachinePath, 'name'>, what: string): string {
  const found = findNonJson(value, new Set())
  if (found !== undefined) {
    const text = `Path '${path.name}': ${what} holds ${found}, which JSON cannot hold. Use plain data in inputs and events.`
    throw new PathError('not_json', text, what)
  }
  return JSON.stringify(value).replaceAll('"__proto__":', '["__proto__"]:')
}

function findNonJson(value: unknown, open: Set<object>): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : String(value)
  if (typeof value !== 'object' || value === null) {
    return ['string', 'boolean', 'undefined', 'object'].includes(typeof value)
      ? undefined
      : `a ${typeof value}`
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (open.has(value)) return 'a value that refers to itself'
  if (!Array.isArray(value) && prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    return `an instance of ${value.constructor.name}`
  }
  open.add(value)
  for (const part of Object.values(value)) {
    const found = findNonJson(part, open)
    if (found !== undefined) return found
  }
  open.delete(value)
  return undefined
}

function formatProperty(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) && name !== '__proto__' ? name : `[${quoteText(name)}]`
}

export function quoteText(text: string): string {
  const escaped = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")
  return `'${escaped}'`
}

export function toOneLine(text: string): string {
  return text.replace(/[\r\n\u2028\u2029]+/g, ' ')
}
