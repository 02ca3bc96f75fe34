import type { AnyStateMachine } from 'xstate'
import { assertMachine } from '../testing/errors.js'
import { CliError } from './cli-error.js'
import { loadModule } from './load-module.js'

/**
 * Loads the machine of a module: its default export, or else the only machine that it exports. Throws a CliError with the
 * problem of the file or its exports.
 */
export async function loadMachine(path: string, cwd: string): Promise<AnyStateMachine> {
  const module = await loadModule(path, cwd, badMachineError)
  const value = module.default ?? findOnlyMachine(module)
  if (value === undefined) {
    const names = Object.keys(module)
    const exported = names.length === 0 ? 'exports nothing' : `exports ${names.join(', ')}`
    throw badMachineError(
      `'${path}' ${exported}. Its default export must be a machine: export default createMachine({ … }).`,
    )
  }
  try {
    assertMachine(value)
  } catch (error) {
    throw badMachineError(`'${path}': ${error instanceof Error ? error.message : String(error)}`, error)
  }
  return value
}

function findOnlyMachine(module: Record<string, unknown>): unknown {
  const machines = Object.values(module).filter(
    (value) => typeof value === 'object' && value !== null && '__xstatenode' in value,
  )
  return machines.length === 1 ? machines[0] : undefined
}

function badMachineError(message: string, cause?: unknown): CliError {
  return new CliError('bad_machine', message, 'MODULE', { cause })
}
