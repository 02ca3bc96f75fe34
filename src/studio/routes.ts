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
  const [api, subject, id, part, seq, ...rest] = pathname.split('/').slice(1).map(decodePart)
  if (api !== 'api' || rest.length > 0 || id === '') return null
  const route =
    id === undefined
      ? parseCommonRoute(subject, searchParams)
      : parseSessionRoute(id, part, seq, searchParams)
  return route?.method === method && (subject === 'sessions' || id === undefined) ? route : null
}

function parseCommonRoute(subject: string | undefined, params: URLSearchParams): Route | null {
  switch (subject) {
    case 'chart':
    case 'visits':
      return { method: 'GET', to: subject }
    case 'sessions':
      return { method: 'GET', to: subject, list: parseListRequest(params) }
    case 'views':
      return { method: 'POST', to: subject }
    case 'compare': {
      const [a, b] = [params.get('a'), params.get('b')]
      return a === null || b === null ? null : { method: 'GET', to: 'compare', a, b }
    }
    case 'live':
      return {
        method: 'GET',
        to: 'live',
        id: params.get('session'),
        after: Number(params.get('after') ?? 0) || 0,
      }
    default:
      return null
  }
}

function parseListRequest(params: URLSearchParams): ListRequest {
  const [offset = '', limit = ''] = ['offset', 'limit'].map((name) => params.get(name) ?? '')
  return {
    q: params.get('q') ?? '',
    sort: params.get('sort') ?? 'status',
    offset: isNumber(offset) ? Number(offset) : 0,
    limit: isNumber(limit) ? Number(limit) : defaultLimit,
  }
}

function parseSessionRoute(
  id: string,
  part: string | undefined,
  seq: string | undefined,
  params: URLSearchParams,
): Route | null {
  if (part === undefined) return { method: 'GET', to: 'session', id }
  if (part === 'moments' && seq !== undefined) {
    return isNumber(seq) ? { method: 'GET', to: 'moment', id, seq: Number(seq) } : null
  }
  if (part === 'requests' && seq !== undefined)
    return isNumber(seq)
      ? { method: 'GET', to: 'request', id, seq: Number(seq), all: params.get('all') === '1' }
      : null
  if (seq !== undefined) return null
  if (part === 'end' || part === 'machine') return { method: 'GET', to: part, id }
  if (part === 'share') {
    const form = (['page', 'card', 'film'] as const).find((one) => one === params.get('form'))
    return form === undefined
      ? null
      : { method: 'GET', to: part, id, form, texts: params.get('texts') !== '0' }
  }
  if (part === 'answers' || part === 'fork' || part === 'marks') return { method: 'POST', to: part, id }
  if (part !== 'moments') return null
  const [first, last, latest] = [params.get('from') ?? '', params.get('to') ?? '', params.get('latest')]
  if (!isNumber(first) || !isNumber(last) || (latest !== null && !isNumber(latest))) return null
  const range = { first: Number(first), last: Number(last) }
  return { method: 'GET', to: 'moments', id, ...range, ...(latest !== null && { latest: Number(latest) }) }
}

const isNumber = (text: string): boolean => /^[1-9]\d{0,8}$/.test(text)

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return ''
  }
}
