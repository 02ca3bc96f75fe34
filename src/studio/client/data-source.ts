import type { ExportedSession, LiveMessage, Refusal, SessionsView } from '../protocol.js'
import { loadOnce } from '../../core/base/platform.js'
import { type Address, paths } from '../routes.js'

/** A server or an exported file. */
export type Source = ReturnType<typeof createServerSource>

/** An error from the server, or `unreachable`. */
export class SourceError extends Error {
  override readonly name = 'SourceError'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export function createServerSource() {
  return {
    /** Whether the source is an exported file, which has one session and is read-only. */
    isFile: false,
    chart: loadOnce(() => send(paths.chart)),
    send,
    /** Returns an unsubscribe function. */
    live: (
      session: { id: string; after: number } | null,
      onMessage: (message: LiveMessage) => void,
    ): (() => void) => {
      const address = session ? paths.live(session.id, session.after) : paths.live()
      const events = new EventSource(`.${address}`)
      let isLost = false
      events.addEventListener('message', ({ data }: MessageEvent<string>) => {
        onMessage(JSON.parse(data) as LiveMessage)
      })
      events.addEventListener('open', () => {
        if (isLost) onMessage({ type: 'store', problem: null })
        isLost = false
      })
      events.addEventListener('error', () => {
        isLost = true
        onMessage({
          type: 'store',
          problem:
            'The studio is not responding. Its process may have ended. This page reconnects when it is back.',
        })
      })
      return () => events.close()
    },
  }
}

export const noSessions: SessionsView = {
  store: 'sessions',
  readOnly: null,
  sessions: [],
  total: 0,
  counts: {},
  known: 0,
  unread: 0,
  isWhole: true,
  facets: {},
  days: [],
  budgets: [],
  views: [],
}

export function createFileSource(island: { textContent: string | null } | null): Source | null {
  if (!island) return null
  const { chart, visits, session, moments } = JSON.parse(island.textContent ?? '') as ExportedSession
  const { id } = session.session
  const sessions: SessionsView = {
    ...noSessions,
    store: 'this file',
    readOnly: 'This file is read-only.',
    sessions: [session.session],
    total: 1,
    known: 1,
  }
  const views: Record<string, unknown> = {
    [paths.visits]: visits,
    [paths.sessions]: sessions,
    [paths.session(id)]: session,
    [paths.end(id)]: { view: session, moment: null },
    [`${paths.session(id)}/moments`]: moments,
  }
  return {
    isFile: true,
    chart: () => Promise.resolve(chart),
    send: async <View>(address: Address<View, unknown>): Promise<View> => {
      const view = views[address.replace(/\?.*/, '')]
      if (view === undefined) throw new SourceError('read_only', 'This file is read-only.')
      return view as View
    },
    live: () => () => undefined,
  }
}

/** A POST of `body`, or a GET without it. */
async function send<View, Body>(address: Address<View, Body>, body?: Body): Promise<View> {
  const headers = { 'content-type': 'application/json' }
  const init = body === undefined ? {} : { method: 'POST', headers, body: JSON.stringify(body) }
  let response: Response
  try {
    // Relative to the page's secret path.
    response = await fetch(`.${address}`, init)
  } catch {
    throw new SourceError(
      'unreachable',
      'The studio is not responding. Check that its process is still running.',
    )
  }
  const value: unknown = await response.json().catch(() => null)
  if (response.ok) return value as View
  const { error } = (value ?? {}) as Partial<Refusal>
  throw new SourceError(
    error?.code ?? String(response.status),
    error?.message ?? `The studio returned status ${response.status}.`,
  )
}
