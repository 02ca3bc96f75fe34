import type { CompareView } from './compare-sessions.js'
import type { MachineView } from './machine-view.js'
import type * as Page from './protocol.js'
import type { RequestView } from './request-view.js'
import type { MarkRequest } from './requests.js'
import type { ListRequest } from './session-query.js'

/** An address with the types of its response and of the body of its POST. */
export type Address<View, Body = undefined> = string & { readonly types?: [View, Body] }

type Post<Body> = Address<Page.Done, Body>

/** Server addresses, shared by client and server. */
export const paths = {
  chart: '/api/chart' as Address<Page.ChartView>,
  visits: '/api/visits' as Address<Page.VisitsView>,
  sessions: '/api/sessions',
  views: '/api/views' as Address<unknown, { views: readonly Page.SavedView[] }>,
  found: ({ q = '', sort = 'status', offset = 0, limit }: Partial<ListRequest>) =>
    `/api/sessions?${new URLSearchParams({ q, sort, offset: String(offset), ...(limit !== undefined && { limit: String(limit) }) }).toString()}` as Address<Page.SessionsView>,
  session: (id: string) => `/api/sessions/${encodeURIComponent(id)}` as Address<Page.SessionView>,
  end: (id: string) => `${paths.session(id)}/end` as Address<Page.EndView>,
  machine: (id: string) => `${paths.session(id)}/machine` as Address<MachineView>,
  moment: (id: string, seq: number) => `${paths.session(id)}/moments/${seq}` as Address<Page.MomentView>,
  /** `all` includes messages that were already in earlier requests. */
  request: (id: string, seq: number, all: boolean) =>
    `${paths.session(id)}/requests/${seq}?all=${all ? 1 : 0}` as Address<RequestView>,
  /** `latest` limits each moment to at least this many of its last messages. */
  moments: (id: string, from: number, to: number, latest?: number) =>
    `${paths.session(id)}/moments?from=${from}&to=${to}${latest === undefined ? '' : `&latest=${latest}`}` as Address<Page.PackedMoments>,
  share: (id: string, { form, texts }: { form: Page.ShareForm; texts: boolean }) =>
    `${paths.session(id)}/share?form=${form}&texts=${texts ? 1 : 0}` as Address<Page.SharedView>,
  answers: (id: string) => `${paths.session(id)}/answers` as Post<Page.Answer>,
  marks: (id: string) => `${paths.session(id)}/marks` as Post<MarkRequest>,
  fork: (id: string) => `${paths.session(id)}/fork` as Post<Page.ForkRequest>,
  compare: (a: string, b: string) =>
    `/api/compare?${new URLSearchParams({ a, b }).toString()}` as Address<CompareView>,
  /** `after` is the last record that the page has. */
  live: (session?: string, after = 0): string =>
    session === undefined
      ? '/api/live'
      : `/api/live?${new URLSearchParams({ session, after: String(after) }).toString()}`,
}

/** A transcript of thousands of messages would take a long time to load. */
export const latestMessages = 60
