import { ConfigError } from '../base/errors.js'
import type { Retriever } from './retriever.js'

/** @throws {ConfigError} for what is no retriever, a promise of one included */
export function checkedMemory(memory: unknown): Retriever | undefined {
  if (memory === undefined) return undefined
  if (typeof (memory as Partial<Retriever> | null)?.retrieve === 'function') return memory as Retriever
  const hint = memory instanceof Promise ? ' It is a promise: await it first.' : ''
  throw new ConfigError(
    'invalid_config',
    `memory must have retrieve(query, { signal }), as memory({ documents }) has.${hint}`,
    'memory',
  )
}
