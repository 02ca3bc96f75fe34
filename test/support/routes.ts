import type { RouteName } from '../../src/studio/resolvers.js'
import type { Route as PageRoute } from '../../src/web/request-handler.js'

// The served routes, for tests that need a row for each address. A new route without an entry does not
// compile.

/** Routes of the chat and AG-UI handlers. */
export const pageRoutes: Record<PageRoute['to'], true> = { send: true, read: true, stream: true, stop: true }

const studioNames: Record<RouteName, string> = {
  'GET chart': 'chart',
  'GET visits': 'visits',
  'GET sessions': 'sessions',
  'GET sessions/:id': 'session',
  'GET sessions/:id/end': 'end',
  'GET sessions/:id/machine': 'machine',
  'GET sessions/:id/moments/:seq': 'moment',
  'GET sessions/:id/moments': 'moments',
  'GET sessions/:id/requests/:seq': 'request',
  'GET compare': 'compare',
  'GET sessions/:id/share': 'share',
  'GET live': 'live',
  'POST sessions/:id/answers': 'answers',
  'POST sessions/:id/fork': 'fork',
  'POST views': 'views',
  'POST sessions/:id/marks': 'marks',
}
export const studioRoutes = Object.values(studioNames)
