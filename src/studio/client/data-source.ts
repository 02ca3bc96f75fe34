import type {
  Answer,
  ChartView,
  Done,
  EndView,
  ExportedSession,
  ForkRequest,
  LiveMessage,
  PackedMoments,
  Refusal,
  SavedView,
  SessionsView,
  SessionView,
  SharedView,
  VisitsView,
} from '../protocol.js'
import type { CompareView } from '../compare-sessions.js'
import type { MachineView } from '../machine-view.js'
import type { RequestView } from '../request-view.js'
import type { MarkRequest } from '../requests.js'
import { loadOnce } from '../../core/base/platform.js'
import { type ListRequest, paths } from '../routes.js'

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
    chart: loadOnce(() => send<ChartView>(paths.chart)),
    sessions: (list: Partial<ListRequest>) => send<SessionsView>(paths.found(list)),
    visits: () => send<VisitsView>(paths.visits),
    end: (id: string) => send<EndView>(paths.end(id)),
    session: (id: string) => send<SessionView>(paths.session(id)),
    machine: (id: string) => send<MachineView>(paths.machine(id)),
    request: (...of: Parameters<typeof paths.request>) => send<RequestView>(paths.request(...of)),
    moments: (...of: Parameters<typeof paths.moments>) => send<PackedMoments>(paths.moments(...of)),
    compare: (a: string, b: string) => send<CompareView>(paths.compare(a, b)),
    share: (...of: Parameters<typeof paths.share>) => send<SharedView>(paths.share(...of)),
    saveViews: (views: readonly SavedView[]) => send<unknown>(paths.views, { views }),
    answer: (id: string, answer: Answer) => send<Done>(paths.answers(id), answer),
    fork: (id: string, request: ForkRequest) => send<Done>(paths.fork(id), request),
    mark: (id: string, request: MarkRequest) => send<Done>(paths.marks(id), request),
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
  const refuse = (): Promise<never> => Promise.reject(new SourceError('read_only', 'This file is read-only.'))
  return {
    isFile: true,
    chart: () => Promise.resolve(chart),
    sessions: () =>
      Promise.resolve({
        ...noSessions,
        store: 'this file',
        readOnly: 'This file is read-only.',
        sessions: [session.session],
        total: 1,
        known: 1,
      }),
    visits: () => Promise.resolve(visits),
    end: (id) => (id === session.session.id ? Promise.resolve({ view: session, moment: null }) : refuse()),
    session: (id) => (id === session.session.id ? Promise.resolve(session) : refuse()),
    moments: () => Promise.resolve(moments),
    machine: refuse,
    request: refuse,
    compare: refuse,
    share: refuse,
    saveViews: refuse,
    answer: refuse,
    fork: refuse,
    mark: refuse,
    live: () => () => undefined,
  }
}

/** A POST of `body`, or a GET without it. */
async function send<T>(address: string, body?: unknown): Promise<T> {
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
  if (response.ok) return value as T
  const { error } = (value ?? {}) as Partial<Refusal>
  throw new SourceError(
    error?.code ?? String(response.status),
    error?.message ?? `The studio returned status ${response.status}.`,
  )
}
