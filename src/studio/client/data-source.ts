import type {
  Answer,
  ChartView,
  CompareView,
  Done,
  EndView,
  ExportedSession,
  ForkRequest,
  LiveMessage,
  MachineView,
  PackedMoments,
  Refusal,
  RequestView,
  SavedView,
  SessionsView,
  SessionView,
  SharedView,
  ShareForm,
  VisitsView,
} from '../protocol.js'
import type { MarkRequest } from '../requests.js'
import { loadOnce } from '../../core/base/platform.js'
import { type ListRequest, paths } from '../routes.js'

export interface Source {
  /** Whether the source is an exported file, which has one session and is read-only. */
  isFile: boolean
  chart(): Promise<ChartView>
  sessions: (list: Partial<ListRequest>) => Promise<SessionsView>
  visits(): Promise<VisitsView>
  end(id: string): Promise<EndView>
  session: (id: string) => Promise<SessionView>
  /** Loads the session of a machine. An exported file has no such session. */
  machine: (id: string) => Promise<MachineView>
  /** `all` includes the messages of earlier requests. An exported file has no requests. */
  request: (id: string, seq: number, all: boolean) => Promise<RequestView>
  /** `latest` is the minimum number of last messages that each moment contains. */
  moments: (id: string, from: number, to: number, latest?: number) => Promise<PackedMoments>
  compare(a: string, b: string): Promise<CompareView>
  share: (id: string, as: { form: ShareForm; texts: boolean }) => Promise<SharedView>
  saveViews(views: readonly SavedView[]): Promise<unknown>
  answer(id: string, answer: Answer): Promise<Done>
  fork(id: string, request: ForkRequest): Promise<Done>
  mark(id: string, request: MarkRequest): Promise<Done>
  /** Returns an unsubscribe function. */
  live(session: { id: string; after: number } | null, onMessage: (message: LiveMessage) => void): () => void
}

/** An error from the server, or `unreachable`. */
export class SourceError extends Error {
  override readonly name = 'SourceError'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export function createServerSource(): Source {
  return {
    isFile: false,
    chart: loadOnce(() => getJson<ChartView>(paths.chart)),
    sessions: (list) => getJson(paths.found(list)),
    visits: () => getJson(paths.visits),
    end: (id) => getJson(paths.end(id)),
    session: (id) => getJson(paths.session(id)),
    machine: (id) => getJson(paths.machine(id)),
    request: (id, seq, all) => getJson(paths.request(id, seq, all)),
    moments: (id, from, to, latest) => getJson(paths.moments(id, from, to, latest)),
    compare: (a, b) => getJson(paths.compare(a, b)),
    share: (id, as) => getJson(paths.share(id, as)),
    saveViews: (views) => postJson(paths.views, { views }),
    answer: (id, answer) => postJson(paths.answers(id), answer),
    fork: (id, request) => postJson(paths.fork(id), request),
    mark: (id, request) => postJson(paths.marks(id), request),
    live: (session, onMessage) => {
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

function getJson<T>(address: string): Promise<T> {
  return sendRequest<T>(address, {})
}

function postJson<T>(address: string, body: unknown): Promise<T> {
  return sendRequest<T>(address, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

async function sendRequest<T>(address: string, init: RequestInit): Promise<T> {
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
