import { UsageError } from '../base/errors.js'
import { readTitle } from './store/session-title.js'
import { unknownSessionError } from './store/store-refusals.js'
import type { SessionStore } from './store/store.js'

/**
 * Gives a session a title; null takes it back.
 *
 * @throws {UsageError} `invalid_option`, `no_titles`
 * @throws {StoreError} `unknown_session`, …
 */
export async function renameSession(store: SessionStore, id: string, given: unknown): Promise<void> {
  const title = readTitle(given)
  if (!store.setTitle)
    throw new UsageError(
      'no_titles',
      'This store keeps no titles. Use memoryStore, fileStore or postgresStore, or give yours a method setTitle(id, title).',
      'store',
    )
  if (!(await store.setTitle(id, title))) throw unknownSessionError(id)
}
