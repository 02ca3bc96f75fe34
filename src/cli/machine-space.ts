import { relative, resolve } from 'node:path'
import type { AnyStateMachine } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import type { ExploreOptions } from '../testing/explore-options.js'
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
  const { inputs, alphabet, serializeState } = module as Partial<ExploreOptions>
  const { createBareEvents } = await import('../testing/bare-events.js')
  return {
    machine,
    options: {
      alphabet: alphabet ?? createBareEvents(machine),
      ...(inputs !== undefined && { inputs }),
      ...(serializeState !== undefined && { serializeState }),
    },
    importFor: (folder) => {
      const file = relative(folder, resolve(cwd, path)).replaceAll('\\', '/')
      const specifier = JSON.stringify(file.startsWith('.') ? file : `./${file}`)
      return name === 'default'
        ? `import machine from ${specifier}`
        : `import { ${name} as machine } from ${specifier}`
    },
    ...(alphabet === undefined && {
      note:
        `'${path}' exports no alphabet: each event of the machine is tried without a payload. Guards that look at ` +
        'payloads need one: export const alphabet = { … }.',
    }),
  }
}

function badMachineError(message: string, cause?: unknown): CliError {
  return new CliError('bad_machine', message, 'MODULE', { cause })
}
