import { StatewrightError } from '../core/base/errors.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { SessionActions } from './session-actions.js'
import { AttachedRuns } from './attached-runs.js'
import { SessionLibrary } from './session-library.js'
import { createExportedPage, readClient } from './studio-page.js'
import type { ExportedSession } from './protocol.js'
import { StudioViews } from './studio-views.js'

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
  return createExportedPage(client, await createSessionData(store, id))
}

/** Everything that the studio shows of a session. */
export function createSessionData(store: SessionStore, id: string): Promise<ExportedSession> {
  const ignore = (): void => undefined
  const runs = new AttachedRuns(ignore, ignore)
  const library = new SessionLibrary(store, () => false)
  const actions = new SessionActions(undefined, undefined, library, runs)
  return new StudioViews(library, actions, { store: '', machine: undefined }).exportSession(id)
}
