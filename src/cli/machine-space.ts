import { relative, resolve } from 'node:path'
import type { AnyStateMachine } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import { omitUndefined } from '../../guards/lib/json.js'
import { formatCount } from '../core/format/format-words.js'
import type { DiffMachinesOptions } from '../testing/diff/diff-machines.js'
import type { ExploreOptions, NamedValues } from '../testing/explore-options.js'
import type { JestTestsOptions } from '../testing/generate-tests.js'
import type { MachinePath, PathStep } from '../testing/machine-path.js'
import type { CliIO } from './command.js'
import { loadMachine, loadModule, refuseMachine } from './load.js'
import { writeGenerated } from './output.js'

export interface MachineSpace {
  machine: AnyStateMachine
  options: ExploreOptions
  /** The statement that imports the machine as `machine`, for a file in this folder. */
  importFor: (folder: string) => string
  /** Describes what replaces a missing alphabet. */
  note?: string
}

export async function createAgentSpace(): Promise<MachineSpace> {
  const { agentSpace } = await import('../testing/index.js')
  return {
    machine: agentMachine,
    options: agentSpace() as unknown as ExploreOptions,
    importFor: () => `import { agentMachine as machine } from 'statewright'`,
  }
}

/** Without an alphabet, each event of the machine is tried once, without a payload. */
export async function loadMachineSpace(path: string, cwd: string): Promise<MachineSpace> {
  const machine = await loadMachine(path, cwd)
  const module = await loadModule(path, cwd, refuseMachine)
  const name = Object.keys(module).find((key) => module[key] === machine) ?? 'default'
  const exported = findSpaceExports(module)
  const { createBareEvents } = await import('../testing/explore-options.js')
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

/** The exploration options that a module exports. */
export function findSpaceExports(
  module: Record<string, unknown>,
): Partial<Pick<ExploreOptions, 'inputs' | 'alphabet' | 'serializeState'>> {
  const { inputs, alphabet, serializeState } = module as Partial<ExploreOptions>
  return omitUndefined({ alphabet, inputs, serializeState })
}

/** The import path of a file, as a literal. */
export function toSpecifier(folder: string, file: string): string {
  return JSON.stringify(toImportPath(folder, file))
}

export function toImportPath(folder: string, file: string): string {
  const path = relative(folder, file).replaceAll('\\', '/')
  return path.startsWith('.') ? path : `./${path}`
}

/** Merges events and inputs by name. The second module's `serializeState` takes precedence. */
export async function loadMachinePair(first: string, second: string, cwd: string) {
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
export function toJsonSteps(steps: readonly PathStep[]): unknown[] {
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
  /** The first line of the file, as a comment. */
  header: string
  format: (folder: string) => string
}

export async function emitTests(
  { dir, machine, kind, count, header, format }: EmittedTests,
  io: CliIO,
): Promise<void> {
  if (dir === undefined) return
  const folder = resolve(io.cwd, dir)
  const file = resolve(folder, `${machine.id.replace(/[^\w-]+/g, '-') || 'machine'}.${kind}.test.js`)
  await writeGenerated(file, format(folder), `// ${header}`, io)
  io.stderr.write(`Wrote ${formatCount(count, 'test')} to ${relative(io.cwd, file)}\n`)
}

/** Writes paths as tests that replay them. */
export async function emitPathTests(
  { machine, importFor }: MachineSpace,
  paths: readonly MachinePath[],
  {
    dir,
    kind,
    ...options
  }: Pick<EmittedTests, 'dir' | 'kind' | 'header'> & Omit<JestTestsOptions, 'imports'>,
  io: CliIO,
): Promise<void> {
  const { generateJestTests } = await import('../testing/generate-tests.js')
  const replay = `import { createMachineHarness, replay } from 'statewright/testing'`
  const format = (folder: string): string =>
    generateJestTests(paths, {
      ...options,
      imports: [replay, importFor(folder)],
      harness: 'createMachineHarness(machine)',
    })
  await emitTests({ dir, machine, kind, count: paths.length, header: options.header, format }, io)
}
