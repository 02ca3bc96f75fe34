import { relative, resolve } from 'node:path'
import type { AnyStateMachine } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import type { DiffMachinesOptions } from '../testing/diff/diff-machines.js'
import type { ExploreOptions, NamedValues } from '../testing/explore-options.js'
import { CliError } from './cli-error.js'
import { loadMachine } from './load-machine.js'
import { loadModule } from './load-module.js'

/** A machine and its exploration options. */
export interface MachineSpace {
  machine: AnyStateMachine
  options: ExploreOptions
  /** The statement that imports the machine as `machine`, for a file in this folder. */
  importFor: (folder: string) => string
  /** Set when the module has no alphabet: what is tried instead. */
  note?: string
}

/** The agent machine and its own alphabet. */
export async function createAgentSpace(): Promise<MachineSpace> {
  const { agentSpace } = await import('../testing/index.js')
  return {
    machine: agentMachine,
    options: agentSpace() as unknown as ExploreOptions,
    importFor: () => `import { agentMachine as machine } from 'statewright'`,
  }
}

/**
 * Loads the machine of a module (see `loadMachine`), with its exports `inputs`, `alphabet` and `serializeState`. Without an
 * alphabet, each event of the machine is tried once, without a payload.
 */
export async function loadMachineSpace(path: string, cwd: string): Promise<MachineSpace> {
  const machine = await loadMachine(path, cwd)
  const module = await loadModule(path, cwd, badMachineError)
  const name = Object.keys(module).find((key) => module[key] === machine) ?? 'default'
  const given = findSpaceExports(module)
  const { createBareEvents } = await import('../testing/explore-options.js')
  return {
    machine,
    options: { ...given, alphabet: given.alphabet ?? createBareEvents(machine) },
    importFor: (folder) => {
      const specifier = toSpecifier(folder, resolve(cwd, path))
      return name === 'default'
        ? `import machine from ${specifier}`
        : `import { ${name} as machine } from ${specifier}`
    },
    ...(given.alphabet === undefined && {
      note:
        `'${path}' exports no alphabet: each event of the machine is tried without a payload. Guards that look at ` +
        'payloads need one: export const alphabet = { … }.',
    }),
  }
}

/** What a module says of the machine that it goes with. */
export function findSpaceExports(
  module: Record<string, unknown>,
): Partial<Pick<ExploreOptions, 'inputs' | 'alphabet' | 'serializeState'>> {
  const { inputs, alphabet, serializeState } = module as Partial<ExploreOptions>
  return {
    ...(alphabet !== undefined && { alphabet }),
    ...(inputs !== undefined && { inputs }),
    ...(serializeState !== undefined && { serializeState }),
  }
}

/** How a file in a folder imports another file: a literal. */
export function toSpecifier(folder: string, file: string): string {
  const path = relative(folder, file).replaceAll('\\', '/')
  return JSON.stringify(path.startsWith('.') ? path : `./${path}`)
}

function badMachineError(message: string, cause?: unknown): CliError {
  return new CliError('bad_machine', message, 'MODULE', { cause })
}

/** Two machines and what they are compared with. */
export interface MachinePairSpace {
  before: MachineSpace
  after: MachineSpace
  options: DiffMachinesOptions
  notes: string[]
}

/**
 * Loads two machines, as `loadMachineSpace` does, and joins what their modules export: the events and inputs of both, by
 * their names, and one `serializeState`, that of the second if it has one. A module without an alphabet is compared by
 * that of the other.
 */
export async function loadMachinePair(first: string, second: string, cwd: string): Promise<MachinePairSpace> {
  const [before, after] = [await loadMachineSpace(first, cwd), await loadMachineSpace(second, cwd)]
  const spaces = [before, after]
  const named = spaces.filter(({ note }) => note === undefined)
  const alphabets = (named.length > 0 ? named : spaces).map(({ options }) => options.alphabet)
  const inputs = spaces.flatMap(({ options }) => (options.inputs === undefined ? [] : [options.inputs]))
  const serializeState = after.options.serializeState ?? before.options.serializeState
  return {
    before,
    after,
    options: {
      events: (snapshot) =>
        joinNamed(alphabets.map((one) => (typeof one === 'function' ? one(snapshot) : one))),
      ...(inputs.length > 0 && { inputs: joinNamed(inputs) }),
      ...(serializeState !== undefined && { serializeState }),
    },
    notes: named.length > 0 ? [] : spaces.flatMap(({ note }) => note ?? []),
  }
}

/** What comes later replaces what has the same name; items of lists have none. */
function joinNamed<Value>(all: readonly NamedValues<Value>[]): NamedValues<Value> {
  const named = all.map((values) => Object.entries(values as Readonly<Record<string, Value>>))
  if (all.every((values) => Array.isArray(values))) return named.flat().map(([, value]) => value)
  return Object.fromEntries(
    named.flatMap((entries, i) =>
      entries.map(([name, value]) => [Array.isArray(all[i]) ? `${i + 1}.${name}` : name, value]),
    ),
  )
}
