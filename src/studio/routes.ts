import type { ShareForm } from './protocol.js'

/** Server addresses, shared by client and server. */
export const paths = {
  chart: '/api/chart',
  visits: '/api/visits',
  sessions: '/api/sessions',
  views: '/api/views',
  found: ({ q = '', sort = 'status', offset = 0, limit }: Partial<ListRequest>): string =>
    `/api/sessions?${new URLSearchParams({ q, sort, offset: String(offset), ...(limit !== undefined && { limit: String(limit) }) }).toString()}`,
  session: (id: string): string => `/api/sessions/${encodeURIComponent(id)}`,
  end: (id: string): string => `${paths.session(id)}/end`,
  machine: (id: string): string => `${paths.session(id)}/machine`,
  moment: (id: string, seq: number): string => `${paths.session(id)}/moments/${seq}`,
  /** `all` includes messages that were already in earlier requests. */
  request: (id: string, seq: number, all: boolean): string =>
    `${paths.session(id)}/requests/${seq}?all=${all ? 1 : 0}`,
  /** `latest` limits each moment to at least this many of its last messages. */
  moments: (id: string, from: number, to: number, latest?: number): string =>
    `${paths.session(id)}/moments?from=${from}&to=${to}${latest === undefined ? '' : `&latest=${latest}`}`,
  share: (id: string, { form, texts }: { form: ShareForm; texts: boolean }): string =>
    `${paths.session(id)}/share?form=${form}&texts=${texts ? 1 : 0}`,
  answers: (id: string): string => `${paths.session(id)}/answers`,
  marks: (id: string): string => `${paths.session(id)}/marks`,
  fork: (id: string): string => `${paths.session(id)}/fork`,
  compare: (a: string, b: string): string => `/api/compare?${new URLSearchParams({ a, b }).toString()}`,
  /** `after` is the last record that the page has. */
  live: (session?: string, after = 0): string =>
    session === undefined
      ? '/api/live'
      : `/api/live?${new URLSearchParams({ session, after: String(after) }).toString()}`,
}

/** A transcript of thousands of messages would take a long time to load. */
export const latestMessages = 60

export interface ListRequest {
  q: string
  sort: string
  offset: number
  limit: number
}

const defaultLimit = 60

export type Route =
  | { method: 'GET'; to: 'chart' | 'visits' }
  | { method: 'GET'; to: 'sessions'; list: ListRequest }
  | { method: 'GET'; to: 'session' | 'end' | 'machine'; id: string }
  | { method: 'GET'; to: 'moment'; id: string; seq: number }
  | { method: 'GET'; to: 'request'; id: string; seq: number; all: boolean }
  | { method: 'GET'; to: 'moments'; id: string; first: number; last: number; latest?: number }
  | { method: 'GET'; to: 'share'; id: string; form: ShareForm; texts: boolean }
  | { method: 'GET'; to: 'compare'; a: string; b: string }
  | { method: 'GET'; to: 'live'; id: string | null; after: number }
  | { method: 'POST'; to: 'answers' | 'fork' | 'marks'; id: string }
  | { method: 'POST'; to: 'views' }

/** Null for an unknown address. Does not check that the session exists. */
export function parseRoute(method: string, address: string): Route | null {
  // Other forms could contain a host.
  if (!/^\/(?![/\\])/.test(address)) return null
  const { pathname, searchParams } = new URL(address, 'http://localhost')
  const [, api, subject, encodedId, part, seq, ...rest] = pathname.split('/')
  if (api !== 'api' || rest.length > 0) return null
  const id = encodedId && decodePart(encodedId)
  const parts = [subject, id && ':id', part, seq && ':seq'].filter((one) => one !== undefined)
  const read = readers[`${method} ${parts.join('/')}`]
  return read?.({ id: id ?? '', seq: isNumber(seq) ? Number(seq) : 0, params: searchParams }) ?? null
}

interface Address {
  id: string
  /** 0 if it is not a number. */
  seq: number
  params: URLSearchParams
}

/** By method and the parts of the address. */
const readers: Record<string, (address: Address) => Route | null> = {
  'GET chart': () => ({ method: 'GET', to: 'chart' }),
  'GET visits': () => ({ method: 'GET', to: 'visits' }),
  'GET sessions': ({ params }) => ({ method: 'GET', to: 'sessions', list: parseListRequest(params) }),
  'GET compare': ({ params }) => {
    const [a, b] = [params.get('a'), params.get('b')]
    return a === null || b === null ? null : { method: 'GET', to: 'compare', a, b }
  },
  'GET live': ({ params }) => {
    const after = Number(params.get('after') ?? 0) || 0
    return { method: 'GET', to: 'live', id: params.get('session'), after }
  },
  'POST views': () => ({ method: 'POST', to: 'views' }),
  'GET sessions/:id': ({ id }) => ({ method: 'GET', to: 'session', id }),
  'GET sessions/:id/end': ({ id }) => ({ method: 'GET', to: 'end', id }),
  'GET sessions/:id/machine': ({ id }) => ({ method: 'GET', to: 'machine', id }),
  'GET sessions/:id/moments/:seq': ({ id, seq }) =>
    seq === 0 ? null : { method: 'GET', to: 'moment', id, seq },
  'GET sessions/:id/requests/:seq': ({ id, seq, params }) =>
    seq === 0 ? null : { method: 'GET', to: 'request', id, seq, all: params.get('all') === '1' },
  'GET sessions/:id/moments': ({ id, params }) => {
    const [from, to, latest] = ['from', 'to', 'latest'].map((name) => params.get(name))
    if (!isNumber(from) || !isNumber(to) || (latest != null && !isNumber(latest))) return null
    const range = { first: Number(from), last: Number(to), ...(latest != null && { latest: Number(latest) }) }
    return { method: 'GET', to: 'moments', id, ...range }
  },
  'GET sessions/:id/share': ({ id, params }) => {
    const form = (['page', 'card', 'film'] as const).find((one) => one === params.get('form'))
    return form ? { method: 'GET', to: 'share', id, form, texts: params.get('texts') !== '0' } : null
  },
  'POST sessions/:id/answers': ({ id }) => ({ method: 'POST', to: 'answers', id }),
  'POST sessions/:id/fork': ({ id }) => ({ method: 'POST', to: 'fork', id }),
  'POST sessions/:id/marks': ({ id }) => ({ method: 'POST', to: 'marks', id }),
}

function parseListRequest(params: URLSearchParams): ListRequest {
  const [offset, limit] = ['offset', 'limit'].map((name) => params.get(name))
  return {
    q: params.get('q') ?? '',
    sort: params.get('sort') ?? 'status',
    offset: isNumber(offset) ? Number(offset) : 0,
    limit: isNumber(limit) ? Number(limit) : defaultLimit,
  }
}

const isNumber = (text: string | null | undefined): boolean => /^[1-9]\d{0,8}$/.test(text ?? '')

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return ''
  }
}
