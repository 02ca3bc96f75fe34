import { relative, resolve } from 'node:path'
import type { AnyStateMachine } from 'xstate'
import { omitUndefined } from '../../../guards/lib/json.js'
import { agentMachine } from '../../../machines/agent.machine.js'
import { type CliIO, defineCommand, writeNotice } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { createRefusal, loadMachine, loadModule, refuseMachine } from '../load.js'
import { outOption, runnerOption } from '../options.js'
import { createProgressLine, writeGenerated, writeOutput } from '../output.js'
import { systemClock } from '../../core/base/clock.js'
import { formatCount, stripControls } from '../../core/format/format-words.js'
import type { DiffMachinesOptions, MachineDiff } from '../../testing/diff/diff-machines.js'
import type { ExploreOptions, NamedValues } from '../../testing/explore-options.js'
import type { JestTestsOptions } from '../../testing/generate-tests.js'
import type { MachinePath, PathStep } from '../../testing/machine-path.js'
import type { PropertyReport } from '../../testing/properties/check-properties.js'
import type { Property } from '../../testing/properties/property.js'

interface MachineSpace {
  machine: AnyStateMachine
  options: ExploreOptions
  /** The statement that imports the machine as `machine`, for a file in this folder. */
  importFor: (folder: string) => string
  note?: string
}

async function createAgentSpace(): Promise<MachineSpace> {
  const { agentSpace } = await import('../../testing/index.js')
  return {
    machine: agentMachine,
    options: agentSpace() as unknown as ExploreOptions,
    importFor: () => `import { agentMachine as machine } from 'statewright'`,
  }
}

/** Without an alphabet, each event of the machine is tried once, without a payload. */
async function loadMachineSpace(path: string, cwd: string): Promise<MachineSpace> {
  const machine = await loadMachine(path, cwd)
  const module = await loadModule(path, cwd, refuseMachine)
  const name = Object.keys(module).find((key) => module[key] === machine) ?? 'default'
  const exported = findSpaceExports(module)
  const { createBareEvents } = await import('../../testing/explore-options.js')
  return {
    machine,
    options: { ...exported, alphabet: exported.alphabet ?? createBareEvents(machine) },
    importFor: (folder) =>
      `import ${name === 'default' ? 'machine' : `{ ${name} as machine }`} from ${toSpecifier(folder, resolve(cwd, path))}`,
    ...(exported.alphabet === undefined && {
      note:
        `'${path}' exports no alphabet, so each event of the machine is tried without a payload. Guards that read ` +
        'payloads need one: export const alphabet = { … }.',
    }),
  }
}

function findSpaceExports(
  module: Record<string, unknown>,
): Partial<Pick<ExploreOptions, 'inputs' | 'alphabet' | 'serializeState'>> {
  const { inputs, alphabet, serializeState } = module as Partial<ExploreOptions>
  return omitUndefined({ alphabet, inputs, serializeState })
}

function toSpecifier(folder: string, file: string): string {
  return JSON.stringify(toImportPath(folder, file))
}

export function toImportPath(folder: string, file: string): string {
  const path = relative(folder, file).replaceAll('\\', '/')
  return path.startsWith('.') ? path : `./${path}`
}

/** Merges events and inputs by name. The second module's `serializeState` takes precedence. */
async function loadMachinePair(first: string, second: string, cwd: string) {
  const [before, after] = [await loadMachineSpace(first, cwd), await loadMachineSpace(second, cwd)]
  const spaces = [before, after]
  const named = spaces.filter(({ note }) => note === undefined)
  const alphabets = (named.length > 0 ? named : spaces).map(({ options }) => options.alphabet)
  const inputs = spaces.flatMap(({ options }) => (options.inputs === undefined ? [] : [options.inputs]))
  const serializeState = after.options.serializeState ?? before.options.serializeState
  const options: DiffMachinesOptions = {
    events: (snapshot) =>
      joinNamed(alphabets.map((one) => (typeof one === 'function' ? one(snapshot) : one))),
    ...(inputs.length > 0 && { inputs: joinNamed(inputs) }),
    ...(serializeState !== undefined && { serializeState }),
  }
  return { before, after, options, notes: named.length > 0 ? [] : spaces.flatMap(({ note }) => note ?? []) }
}

/** Merges values. Later values replace earlier ones with the same name. Items of lists have no names. */
function joinNamed<Value>(all: readonly NamedValues<Value>[]): NamedValues<Value> {
  const named = all.map((values) => Object.entries(values as Readonly<Record<string, Value>>))
  if (all.every((values) => Array.isArray(values))) return named.flat().map(([, value]) => value)
  return Object.fromEntries(
    named.flatMap((entries, i) =>
      entries.map(([name, value]) => [Array.isArray(all[i]) ? `${i + 1}.${name}` : name, value]),
    ),
  )
}

/** Converts steps to JSON. Snapshots are omitted, because their contexts may be large. */
function toJsonSteps(steps: readonly PathStep[]): unknown[] {
  return steps.map(({ event, label, state: { value, status }, transitions, ...more }) => ({
    event,
    label,
    state: { value, status },
    transitions,
    ...more,
  }))
}

interface EmittedTests {
  /** The folder of `--emit`. Without it, nothing is written. */
  dir: string | undefined
  machine: AnyStateMachine
  /** The middle of the file's name, such as `paths` in `door.paths.test.js`. */
  kind: string
  count: number
  header: string
  format: (folder: string) => string
}

async function emitTests(
  { dir, machine, kind, count, header, format }: EmittedTests,
  io: CliIO,
): Promise<void> {
  if (dir === undefined) return
  const folder = resolve(io.cwd, dir)
  const file = resolve(folder, `${machine.id.replace(/[^\w-]+/g, '-') || 'machine'}.${kind}.test.js`)
  await writeGenerated(file, format(folder), `// ${header}`, io)
  io.stderr.write(`Wrote ${formatCount(count, 'test')} to ${relative(io.cwd, file)}\n`)
}

async function emitPathTests(
  { machine, importFor }: MachineSpace,
  paths: readonly MachinePath[],
  {
    dir,
    kind,
    ...options
  }: Pick<EmittedTests, 'dir' | 'kind' | 'header'> & Omit<JestTestsOptions, 'imports'>,
  io: CliIO,
): Promise<void> {
  const { generateJestTests } = await import('../../testing/generate-tests.js')
  const replay = `import { createMachineHarness, replay } from 'statewright/testing'`
  const format = (folder: string): string =>
    generateJestTests(paths, {
      ...options,
      imports: [replay, importFor(folder)],
      harness: 'createMachineHarness(machine)',
    })
  await emitTests({ dir, machine, kind, count: paths.length, header: options.header, format }, io)
}

/** Explores a machine, with its progress on stderr. */
export function showProgress<Result>(
  limit: number | undefined,
  io: CliIO,
  explore: (options: Pick<ExploreOptions, 'limit' | 'onProgress'>) => Result,
): Result {
  const line = createProgressLine(io, systemClock)
  try {
    return explore({
      ...(limit !== undefined && { limit }),
      onProgress: ({ states, events, waiting }) =>
        line.update(`${states} states, ${events} events, ${waiting} waiting`),
    })
  } finally {
    line.close()
  }
}

const exploreOptions = {
  runner: runnerOption,
  limit: { value: 'N', min: 1, about: 'stop after this many distinct states (default: 20000)' },
} as const

export const pathsCommand = defineCommand({
  name: 'paths',
  about: 'Finds paths through every transition of a state machine.',
  positional: '[MODULE]',
  options: {
    coverage: {
      value: 'WHAT',
      choices: ['transitions', 'pairs'],
      about: 'transitions (default), or pairs: every two transitions that can follow each other',
    },
    emit: { value: 'DIR', about: 'write the paths to this folder, as a test file' },
    json: { about: 'print the coverage as one line of JSON instead of a table' },
    ...exploreOptions,
  },
  notes: [
    'Without MODULE, the machine is the agent loop. MODULE is a .js, .mjs or .ts file with an XState v5 machine as its default ' +
      'export. It may also export:\n' +
      '  inputs          inputs of the machine: { name: input, … }\n' +
      '  alphabet        events to try: { name: event, … }, or a function of the\n' +
      '                  snapshot that returns them\n' +
      '  serializeState  a function of the snapshot; equal strings are one state',
    'Exit codes: 0 every transition is covered, 1 some are not (the table shows why), 2 bad usage or machine.',
    'Examples:\n' +
      '  statewright paths\n' +
      '  statewright paths ./checkout.machine.mjs --coverage pairs\n' +
      '  statewright paths ./checkout.machine.mjs --emit test/paths',
  ],
  execute: async ({ values, positionals: [module] }, io) => {
    const { limit, runner = 'jest', emit: dir } = values
    const space = module === undefined ? await createAgentSpace() : await loadMachineSpace(module, io.cwd)
    if (space.note !== undefined) writeNotice(io, space.note)
    const { generatePaths, formatCoverage } = await import('../../testing/index.js')
    const { coverage, paths } = showProgress(limit, io, (shown) =>
      generatePaths(space.machine, {
        ...space.options,
        ...shown,
        coverage: values.coverage === 'pairs' ? 'transition-pairs' : 'transitions',
      }),
    )
    io.stdout.write(values.json ? `${JSON.stringify(coverage)}\n` : formatCoverage(coverage))
    const title = `every transition of ${space.machine.id}`
    const header = 'Generated by `statewright paths`. Do not edit; generate it again.'
    await emitPathTests(space, paths, { dir, kind: 'paths', title, header, runner }, io)
    const isComplete = coverage.transitions.every(({ count }) => count > 0)
    return isComplete ? exitCodes.completed : exitCodes.error
  },
})

const propertiesHeader = 'Generated by `statewright properties`: runs that violate a property.'

export const propertiesCommand = defineCommand({
  name: 'properties',
  about: 'Checks properties of a state machine, and shows counterexamples.',
  positional: 'MACHINE PROPERTIES',
  options: {
    emit: { value: 'DIR', about: 'write the counterexamples to this folder, as a test file' },
    json: { about: 'print the reports as one line of JSON' },
    ...exploreOptions,
  },
  notes: [
    'MACHINE and PROPERTIES are .js, .mjs or .ts files. The default export of MACHINE is an XState v5 machine. PROPERTIES ' +
      'exports properties, created with always, never, leadsTo, until, canReach and decreases from statewright/testing:',
    "  export const properties = {\n    'a request is answered': leadsTo('asking', isFinal, { fair: ['GRANT'] }),\n  }",
    'Both may export inputs, alphabet and serializeState (see statewright paths --help); the exports of PROPERTIES take precedence.',
    'Exit codes: 0 every property holds, 1 a property is violated or the limit was reached first, 2 bad usage or modules.',
    'Examples:\n' +
      '  statewright properties request.machine.ts request.properties.ts\n' +
      '  statewright properties request.machine.ts request.properties.ts \\\n' +
      '    --emit test/stories',
  ],
  execute: async ({ values, positionals: [machinePath = '', path = ''] }, io) => {
    const { limit, runner = 'jest', emit: dir } = values
    const space = await loadMachineSpace(machinePath, io.cwd)
    const { properties, ...exported } = await loadProperties(path, io.cwd)
    if (space.note !== undefined && exported.alphabet === undefined) writeNotice(io, space.note)
    const { checkProperties, generateStoryTests } = await import('../../testing/index.js')
    const reports = showProgress(limit, io, (shown) =>
      checkProperties(space.machine, properties, { ...space.options, ...exported, ...shown }),
    )
    io.stdout.write(values.json ? `${JSON.stringify(toReportsJson(reports))}\n` : formatReports(reports))
    const stories = Object.values(reports).flatMap(({ counterexample }) => counterexample ?? [])
    if (stories.length > 0) {
      const { machine, importFor } = space
      const specify = (folder: string, module: string): string => toSpecifier(folder, resolve(io.cwd, module))
      const format = (folder: string): string =>
        generateStoryTests(stories, {
          title: `properties of ${machine.id}`,
          header: propertiesHeader,
          runner,
          imports: [
            `import { checkStory } from 'statewright/testing'`,
            importFor(folder),
            `import * as ofMachine from ${specify(folder, machinePath)}`,
            `import * as ofProperties from ${specify(folder, path)}`,
          ],
          properties: 'ofProperties.properties',
          // A story contains its own events, so the alphabet is empty.
          options: '{ ...ofMachine, ...ofProperties, alphabet: [] }',
        })
      const count = stories.length
      await emitTests({ dir, machine, kind: 'properties', count, header: propertiesHeader, format }, io)
    }
    const isSure = Object.values(reports).every(({ holds }) => holds === true)
    return isSure ? exitCodes.completed : exitCodes.error
  },
})

async function loadProperties(path: string, cwd: string) {
  const refuse = createRefusal('bad_properties', null, 'PROPERTIES')
  const module = await loadModule(path, cwd, refuse)
  const { properties } = module
  if (typeof properties !== 'object' || properties === null)
    throw refuse(
      `'${path}' exports no properties. It needs: export const properties = { 'a name': always(…) }.`,
    )
  return { ...findSpaceExports(module), properties: properties as Record<string, Property> }
}

function formatReports(reports: Record<string, PropertyReport>): string {
  const all = Object.values(reports)
  const lines = all.map(({ message, holds, begun }) => {
    const mark = holds === null ? '?' : holds ? '✓' : '✗'
    return `${mark} ${stripControls(message)}${begun === 0 && holds !== false ? '; it was never triggered' : ''}`
  })
  const count = (wanted: boolean | null): number => all.filter(({ holds }) => holds === wanted).length
  const unknown = count(null) > 0 ? `, ${count(null)} unknown` : ''
  const total = `${all.length} properties: ${count(true)} hold, ${count(false)} broken${unknown}`
  return `${[...lines, total].join('\n')}\n`
}

function toReportsJson(reports: Record<string, PropertyReport>): unknown {
  return Object.fromEntries(
    Object.entries(reports).map(([name, { counterexample, ...report }]) => {
      const { reason, path, loop } = counterexample ?? {}
      const story = path && { reason, input: path.input, steps: toJsonSteps(path.steps) }
      const whole = story && { ...story, loop: loop && toJsonSteps(loop) }
      return [name, { ...report, counterexample: whole ?? null }]
    }),
  )
}

const formats = ['text', 'json', 'svg', 'mermaid'] as const

export const diffCommand = defineCommand({
  name: 'diff',
  about: 'Shows where two versions of a state machine differ.',
  positional: 'BEFORE AFTER',
  options: {
    format: {
      short: 'f',
      value: 'FORMAT',
      choices: formats,
      about: `one of ${formats.join(', ')} (default: text)`,
    },
    ...outOption,
    emit: { value: 'DIR', about: 'write the traces to this folder, as a Jest file that fails on AFTER' },
    limit: { value: 'N', min: 1, about: 'compare at most this many pairs of states (default: 20000)' },
  },
  notes: [
    'BEFORE and AFTER are .js, .mjs or .ts files with an XState v5 machine as their default export. They may also export ' +
      'inputs, alphabet and serializeState (see statewright paths --help); the exports of both files are used.',
    'States, emitted events and outputs are compared. svg needs: npm install @hpcc-js/wasm-graphviz',
    'Exit codes: 0 no difference, 1 the machines differ, 2 bad usage or machine.',
    'Examples:\n' +
      '  statewright diff before.machine.ts after.machine.ts\n' +
      '  statewright diff before.machine.ts after.machine.ts -f svg -o difference.svg\n' +
      '  statewright diff before.machine.ts after.machine.ts --emit test/paths',
  ],
  execute: async ({ values, positionals: [first = '', second = ''] }, io) => {
    const { format = 'text', limit, out, emit: dir } = values
    const { before, after, options, notes } = await loadMachinePair(first, second, io.cwd)
    for (const note of notes) writeNotice(io, note)
    const { diffMachines } = await import('../../testing/index.js')
    const diff = showProgress(limit, io, (shown) =>
      diffMachines(before.machine, after.machine, { ...options, ...shown }),
    )
    await writeOutput(await formatDiff(diff, format), out, io)
    if (format !== 'text' && diff.bounded !== null) writeNotice(io, diff.bounded)
    if (diff.differences.length === 0) return exitCodes.completed
    const paths = diff.differences.map((difference) => difference.before)
    const title = `${after.machine.id} behaves as before`
    const header = 'Generated by `statewright diff`: the behavior of a machine before a change.'
    await emitPathTests(after, paths, { dir, kind: 'diff', title, header }, io)
    return exitCodes.error
  },
})

async function formatDiff(diff: MachineDiff, format: (typeof formats)[number]): Promise<string> {
  if (format === 'text') return `${stripControls(String(diff))}\n`
  if (format === 'json') return `${JSON.stringify(toDiffJson(diff))}\n`
  const { toDifferenceChart, toMermaid, toSvg } = await import('../../diagram/index.js')
  const { chart, look } = toDifferenceChart(diff.differences)
  return format === 'svg' ? toSvg(chart, { look }) : toMermaid(chart, look)
}

function toDiffJson({ differences, ...rest }: MachineDiff): unknown {
  const brief = ({ input, steps }: MachinePath): unknown => ({ input, steps: toJsonSteps(steps) })
  const all = differences.map(({ before, after, ...difference }) => ({
    ...difference,
    before: brief(before),
    after: brief(after),
  }))
  return { differences: all, ...rest }
}
