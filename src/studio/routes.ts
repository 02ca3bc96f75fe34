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
