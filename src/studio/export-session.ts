import { StatewrightError } from '../core/base/errors.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { Actions } from './actions.js'
import { AttachedRuns } from './attached.js'
import { Library } from './library.js'
import { exportedPage, readClient } from './page.js'
import type { ExportedSession } from './protocol.js'
import { Views } from './views.js'

/**
 * A session as one file to send to somebody: the page, with everything that it shows of this session in it. It asks
 * nobody for anything. Secrets are scrubbed, as they are in the studio.
 *
 * @throws {StoreError} `unknown_session`, …
 * @throws {StatewrightError} `no_page` where the package was not built
 */
export async function exportSession(store: SessionStore, id: string): Promise<string> {
  const client = await readClient()
  if (client === null)
    throw new StatewrightError('no_page', 'The page of the studio was not built: npm run build.')
  return exportedPage(client, await sessionData(store, id))
}

/** Everything that the studio shows of a session. */
export function sessionData(store: SessionStore, id: string): Promise<ExportedSession> {
  const nobody = (): void => undefined
  const runs = new AttachedRuns(nobody, nobody)
  const library = new Library(store, () => false)
  const actions = new Actions(undefined, undefined, library, runs)
  return new Views(library, actions, { store: '', machine: undefined }).exported(id)
}
