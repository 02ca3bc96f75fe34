import { ConfigError } from '../../base/errors.js'
import type { SessionStore } from './store.js'

const methods = ['acquire', 'renew', 'release', 'append', 'read', 'get', 'list', 'delete', 'close'] as const

/** @throws {ConfigError} for a store that lacks a method, a promise of one included */
export function checkedStore(store: unknown): void {
  if (store === undefined) return
  const given = store as Partial<SessionStore> | null
  const missing = methods.find((method) => typeof given?.[method] !== 'function')
  if (missing === undefined) return
  const hint = store instanceof Promise ? ' It is a promise: await it first.' : ''
  throw new ConfigError(
    'invalid_config',
    `store must be a SessionStore, such as memoryStore() or fileStore({ dir }); it has no ${missing}().${hint}`,
    'store',
  )
}
