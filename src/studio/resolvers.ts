import { valueOr } from '../core/base/maybe-promise.js'
import { renderShared } from './export-session.js'
import type { Prefetcher } from './prefetch.js'
import { answerSchema, forkSchema, markSchema, parseRequest, savedViewsSchema } from './requests.js'
import type { SessionActions } from './session-actions.js'
import type { StudioViews } from './studio-views.js'

export interface RouteParts {
  views: StudioViews
  actions: SessionActions
  prefetcher: Prefetcher
}

interface Asked {
  id: string
  /** 0 if the address has none. */
  seq: number
  params: URLSearchParams
  /** The body of a POST. */
  body: unknown
}

/** By method and the parts of the address. A resolver returns null for invalid parameters. */
export const resolvers = {
  'GET chart': ({ views }) => views.getChart(),
  'GET visits': ({ views }) => views.getVisits(),
  'GET sessions': async ({ views, prefetcher }, { params }) => {
    const view = await views.getSessions({
      q: params.get('q') ?? '',
      sort: params.get('sort') ?? 'status',
      offset: readNumber(params, 'offset') ?? 0,
      limit: readNumber(params, 'limit') ?? 60,
    })
    void prefetcher.prefetch(view.sessions)
    return view
  },
  'GET sessions/:id': ({ views }, { id }) => views.getSession(id),
  'GET sessions/:id/end': ({ views }, { id }) => views.getEnd(id),
  'GET sessions/:id/machine': ({ views }, { id }) => views.getMachine(id),
  'GET sessions/:id/moments/:seq': ({ views }, { id, seq }) => views.getMoment(id, seq),
  'GET sessions/:id/requests/:seq': ({ views }, { id, seq, params }) =>
    views.getRequest(id, { seq, all: params.get('all') === '1' }),
  'GET sessions/:id/moments': async ({ views }, { id, params }) => {
    const [first, last, latest] = ['from', 'to', 'latest'].map((name) => readNumber(params, name))
    if (first == null || last == null || (latest === null && params.has('latest'))) return null
    return views.getMoments(id, { first, last, latest: latest ?? undefined })
  },
  'GET sessions/:id/share': async ({ views }, { id, params }) => {
    const form = (['page', 'card', 'film'] as const).find((one) => one === params.get('form'))
    if (!form) return null
    const texts = params.get('texts') !== '0'
    return { content: await renderShared(await views.exportSession(id), { form, texts }) }
  },
  'GET compare': async ({ views }, { params }) => {
    const [a, b] = [params.get('a'), params.get('b')]
    return a === null || b === null ? null : views.compareSessions(a, b)
  },
  'POST views': ({ views }, { body }) => views.saveViews(parseRequest(savedViewsSchema, body)),
  'POST sessions/:id/answers': ({ actions }, { id, body }) =>
    actions.applyAnswer(id, parseRequest(answerSchema, body)),
  'POST sessions/:id/fork': ({ actions }, { id, body }) => actions.fork(id, parseRequest(forkSchema, body)),
  'POST sessions/:id/marks': ({ actions }, { id, body }) =>
    actions.markStep(id, parseRequest(markSchema, body)),
} satisfies Record<string, (parts: RouteParts, asked: Asked) => Promise<object | null>>

export type RouteName = keyof typeof resolvers | 'GET live'

/** Null for an address without a route. Does not check that the session exists. */
export function findRoute(
  method: string,
  address: string,
): (Omit<Asked, 'body'> & { name: RouteName }) | null {
  // Other forms could contain a host.
  if (!/^\/(?![/\\])/.test(address)) return null
  const { pathname, searchParams: params } = new URL(address, 'http://localhost')
  const [, api, subject, encodedId, part, seq, ...rest] = pathname.split('/')
  if (api !== 'api' || rest.length > 0 || (seq !== undefined && !isNumber(seq))) return null
  const id = encodedId && decodePart(encodedId)
  const parts = [subject, id && ':id', part, seq && ':seq'].filter((one) => one !== undefined)
  const name = `${method} ${parts.join('/')}` as RouteName
  return name === 'GET live' || name in resolvers
    ? { name, id: id ?? '', seq: Number(seq ?? 0), params }
    : null
}

const isNumber = (text: string | null): boolean => /^[1-9]\d{0,8}$/.test(text ?? '')

function readNumber(params: URLSearchParams, name: string): number | null {
  const text = params.get(name)
  return isNumber(text) ? Number(text) : null
}

function decodePart(part: string): string {
  return valueOr(() => decodeURIComponent(part), '')
}
