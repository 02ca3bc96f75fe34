import { startStudio } from '../../../src/studio/index.js'
import { paths } from '../../../src/studio/routes.js'
import type { Answer } from '../../../src/studio/protocol.js'
import { Visitor, ask } from '../../studio/visitor.js'
import type { Place, Surface, Told } from '../surface.js'
import { sender, session } from '../world.js'

/** A request from the page that opened the address, or from another page. */
function surface(
  of: string,
  does: Surface['does'],
  requestOf: (place: Place) => { path: string; body?: unknown },
  more: Partial<Pick<Surface, 'as' | 'isSilent'>> = {},
): Surface {
  return {
    of: `studio.${of}`,
    ...more,
    does,
    knows: 'operator',
    use: async (place) => {
      const { agent } = place.process
      const studio = await startStudio({
        store: place.process.store,
        agent: agent as never,
        context: 'operator',
        by: sender,
      })
      try {
        const address = studio.url
        const { headers } = await ask(address)
        return await answered(new Visitor(studio, { address, headers }), requestOf(place))
      } finally {
        await studio.close()
      }
    },
  }
}

async function answered(visitor: Visitor, { path, body }: { path: string; body?: unknown }): Promise<Told> {
  const post = { method: 'POST', body: JSON.stringify(body) }
  const headers = { origin: visitor.origin, 'content-type': 'application/json' }
  const { status, body: shown } = await visitor.raw(path, body === undefined ? {} : { ...post, headers })
  if (status === 200) return { refused: null, shown }
  return { refused: (JSON.parse(shown) as { error: { code: string } }).error.code, shown }
}

const answer = (does: Surface['does'], of: (place: Place) => Answer, as: string): Surface =>
  surface('answers', does, (place) => ({ path: paths.answers(session), body: of(place) }), { as })

/** The routes of the studio, by `Route`. */
export const studioSurfaces: Surface[] = [
  surface('chart', 'look', () => ({ path: paths.chart }), { isSilent: true }),
  surface('visits', 'look', () => ({ path: paths.visits }), { isSilent: true }),
  surface('sessions', 'look', () => ({ path: paths.sessions })),
  surface('session', 'look', () => ({ path: paths.session(session) })),
  surface('end', 'look', () => ({ path: paths.end(session) })),
  surface('moment', 'look', () => ({ path: paths.moment(session, 2) })),
  surface('moments', 'look', () => ({ path: paths.moments(session, 1, 2) })),
  surface('share', 'look', () => ({ path: paths.share(session, { form: 'card', texts: true }) })),
  surface('share', 'look', () => ({ path: paths.share(session, { form: 'film', texts: true }) }), {
    as: 'film',
  }),
  surface('compare', 'look', () => ({ path: paths.compare(session, session) })),
  answer('answer', ({ question }) => ({ type: 'approve', ...question }), 'approve'),
  answer('answer', ({ question }) => ({ type: 'reject', ...question }), 'reject'),
  answer('answer', ({ question }) => ({ type: 'toolOutput', ...question, value: 1 }), 'toolOutput'),
  answer('answer', () => ({ type: 'reply', input: 'Yes.' }), 'reply'),
  answer('answer', ({ question }) => ({ type: 'approve', ...question, grant: {} }), 'approve, with a grant'),
  answer('revoke', ({ grant }) => ({ type: 'revoke', grant }), 'revoke'),
  answer('continue', () => ({ type: 'resume' }), 'resume'),
  answer('continue', () => ({ type: 'steer', text: 'Be quick.' }), 'steer'),
  answer('stop', () => ({ type: 'pause' }), 'pause'),
  answer('stop', () => ({ type: 'cancel' }), 'cancel'),
  surface('marks', 'mark', () => ({
    path: paths.marks(session),
    body: { seq: 1, mark: 'bad', note: 'Too slow.' },
  })),
  surface('fork', 'fork', () => ({ path: paths.fork(session), body: { at: 2 } })),
  surface('fork', 'fork and run', () => ({ path: paths.fork(session), body: { at: 2, run: true } })),
  surface('fork', 'fork and run', () => ({
    path: paths.fork(session),
    body: { at: 2, run: true, askFirst: true, edit: { instructions: 'You are brief.' } },
  })),
]
