import { StatewrightError } from '../core/base/errors.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { SessionActions } from './session-actions.js'
import { AttachedRuns } from './attached-runs.js'
import { SessionCatalogue } from './session-catalogue.js'
import { SessionLibrary } from './session-library.js'
import { createExportedPage, readClient } from './studio-page.js'
import type { ExportedSession, ShareForm } from './protocol.js'
import { drawCard } from './session-card.js'
import { drawFilm } from './session-film.js'
import { StudioViews } from './studio-views.js'
import { withoutTexts } from './without-texts.js'

/** How a session is shared. `texts`: with what people, models and tools said; default true. */
export interface ShareOptions {
  form: ShareForm
  texts?: boolean
}

/**
 * Exports a session as one HTML file, which is the studio's page with the data of this session and makes no requests, as a
 * picture or as a film. Secrets are scrubbed, as in the studio.
 *
 * @throws {StoreError} `unknown_session`, …
 * @throws {StatewrightError} `no_page` where the package was not built, `no_film` where there is nothing to show
 */
export async function exportSession(
  store: SessionStore,
  id: string,
  options: ShareOptions = { form: 'page' },
): Promise<string> {
  return renderShared(await createSessionData(store, id), options)
}

/** @throws {StatewrightError} `no_page` where the package was not built, `no_film` where there is nothing to show */
export async function renderShared(
  data: ExportedSession,
  { form, texts = true }: ShareOptions,
): Promise<string> {
  const shared = texts ? data : withoutTexts(data)
  if (form === 'card') return drawCard(shared)
  if (form === 'film') return drawFilm(shared)
  const client = await readClient()
  if (client === null)
    throw new StatewrightError('no_page', 'The page of the studio was not built: npm run build.')
  return createExportedPage(client, shared)
}

/** All data that the studio shows of a session. */
export function createSessionData(store: SessionStore, id: string): Promise<ExportedSession> {
  const ignore = (): void => undefined
  const runs = new AttachedRuns(ignore, ignore)
  const library = new SessionLibrary(store, () => false)
  const actions = new SessionActions({ library, runs })
  const catalogue = new SessionCatalogue(library)
  return new StudioViews(catalogue, actions, { store: '', machine: undefined }).exportSession(id)
}
