import type { Route as StudioRoute } from '../../src/studio/routes.js'
import type { Route as PageRoute } from '../../src/web/request-handler.js'

// The served routes, for tests that need a row for each address. A new route without an entry does not
// compile.

/** Routes of the chat and AG-UI handlers. */
export const pageRoutes: Record<PageRoute['to'], true> = { send: true, read: true, stream: true, stop: true }

export const studioRoutes: Record<StudioRoute['to'], true> = {
  chart: true,
  visits: true,
  sessions: true,
  session: true,
  end: true,
  machine: true,
  moment: true,
  moments: true,
  request: true,
  compare: true,
  share: true,
  live: true,
  answers: true,
  fork: true,
  views: true,
  marks: true,
}
