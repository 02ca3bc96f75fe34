import fc from 'fast-check'
import { MomentPacker, unpackMoment } from '../../src/studio/pack-moments.js'
import type { MomentView } from '../../src/studio/protocol.js'
import { findRoute, type RouteName, resolvers } from '../../src/studio/resolvers.js'
import { paths } from '../../src/studio/routes.js'
import { sampled } from '../support/extent.js'

describe('the addresses of the studio', () => {
  const id = 'ann:2026-05@home'

  it.each<[string, RouteName, { id?: string; seq?: number }?]>([
    [paths.chart, 'GET chart'],
    [paths.sessions, 'GET sessions'],
    [paths.found({ q: 'a&b tool:pay' }), 'GET sessions'],
    [paths.session(id), 'GET sessions/:id', { id }],
    [paths.end(id), 'GET sessions/:id/end', { id }],
    [paths.machine(id), 'GET sessions/:id/machine', { id }],
    [paths.moment(id, 7), 'GET sessions/:id/moments/:seq', { id, seq: 7 }],
    [paths.moments(id, 1, 64), 'GET sessions/:id/moments', { id }],
    [paths.request(id, 7, true), 'GET sessions/:id/requests/:seq', { id, seq: 7 }],
    [paths.share(id, { form: 'card', texts: true }), 'GET sessions/:id/share', { id }],
    [paths.marks(id), 'POST sessions/:id/marks', { id }],
    [paths.views, 'POST views'],
    [paths.answers(id), 'POST sessions/:id/answers', { id }],
    [paths.fork(id), 'POST sessions/:id/fork', { id }],
    [paths.compare(id, 'b'), 'GET compare'],
    [paths.live(), 'GET live'],
    [paths.live(id, 12), 'GET live'],
  ])('%s leads to %s only', (address, name, parts = {}) => {
    const [method = '', other] = name.startsWith('GET') ? ['GET', 'POST'] : ['POST', 'GET']
    expect(findRoute(method, address)).toMatchObject({ name, id: '', seq: 0, ...parts })
    expect(findRoute(other, address)).toBeNull()
  })

  /** The call of the views that the address results in, with its result. */
  async function resolve(address: string) {
    const calls: unknown[] = []
    const views = new Proxy(
      {},
      {
        get:
          (_target, name) =>
          async (...args: unknown[]) =>
            calls.push([name, ...args]) && {},
      },
    )
    const route = findRoute('GET', address)
    if (!route || route.name === 'GET live') throw new Error(`No route leads to ${address}.`)
    const prefetcher = { prefetch: () => undefined }
    const parts = { views, actions: {}, prefetcher } as unknown as Parameters<
      (typeof resolvers)['GET compare']
    >[0]
    return { value: await resolvers[route.name](parts, { ...route, body: undefined }), calls }
  }

  it.each([
    [paths.sessions, 'getSessions', { q: '', sort: 'status', offset: 0, limit: 60 }],
    [
      paths.found({ q: 'a&b tool:pay', sort: 'cost', offset: 60, limit: 10 }),
      'getSessions',
      { q: 'a&b tool:pay', sort: 'cost', offset: 60, limit: 10 },
    ],
    [paths.moment(id, 7), 'getMoment', id, 7],
    [paths.moments(id, 1, 64), 'getMoments', id, { first: 1, last: 64 }],
    [paths.moments(id, 1, 64, 60), 'getMoments', id, { first: 1, last: 64, latest: 60 }],
    [paths.request(id, 7, true), 'getRequest', id, { seq: 7, all: true }],
    [paths.compare(id, 'b'), 'compareSessions', id, 'b'],
  ])('%s contains the parameters of %s', async (address, ...call) => {
    expect((await resolve(address)).calls).toEqual([call])
  })

  it.each([
    '/api/compare?a=ann',
    '/api/sessions/ann/moments',
    '/api/sessions/ann/moments?from=1&to=2&latest=few',
    '/api/sessions/ann/share?form=poem',
  ])('%s finds nothing', async (address) => {
    expect(await resolve(address)).toEqual({ value: null, calls: [] })
  })

  it.each([
    '/',
    '/api',
    '/api/charts',
    '/api/chart/ann',
    '/api/sessions/',
    '/api/sessions/ann/moments/0',
    '/api/sessions/ann/moments/1.5',
    '/api/sessions/ann/moments/7/more',
    '/api/sessions/ann/secrets',
    '/api/sessions/ann/requests',
    '/api/sessions/ann/requests/0',
    '/api/sessions/%E0%A4%A',
    '//',
    '//evil.example/api/sessions',
    '/\\evil.example/api/sessions',
    'http://evil.example/api/sessions',
  ])('%s leads nowhere', (address) => {
    expect(findRoute('GET', address)).toBeNull()
  })
})

it('the common part of several moments is sent once', () => {
  const message = {
    role: 'user',
    id: 'm1',
    at: 1,
    forkAt: null,
    text: 'Hello',
    reasoning: '',
    calls: [],
    marks: [],
  } as const
  const moment = (seq: number): MomentView => ({
    seq,
    earlier: 0,
    transcript: [{ ...message, media: [], calls: [], marks: [] }],
    instructions: { text: 'Be brief.', from: 'agent', forkAt: null },
    record: { type: 'event', seq },
    context: { steps: seq, config: { limits: { maxSteps: 20 } } },
    changed: ['steps'],
    guards: [],
    budget: [{ name: 'steps', used: seq, limit: 20, children: 0, inherited: 0 }],
    pending: [],
    grants: [],
    actions: ['pause', 'cancel'],
  })
  const packer = new MomentPacker()
  for (const seq of [3, 4]) packer.addMoment(moment(seq))
  const sent = JSON.stringify(packer.packed)
  const { packed } = packer
  expect(sent.split('Hello')).toHaveLength(2)
  expect(sent.split('maxSteps')).toHaveLength(2)
  expect([unpackMoment(packed, 3), unpackMoment(packed, 4)]).toEqual([moment(3), moment(4)])
  expect(unpackMoment(packed, 5)).toBeNull()
})

describe('the lists of many moments', () => {
  const bare = (seq: number, texts: readonly string[]): MomentView => ({
    seq,
    earlier: 0,
    transcript: texts.map((text) => ({
      role: 'user',
      id: text,
      at: 1,
      forkAt: null,
      text,
      media: [],
      reasoning: '',
      calls: [],
      marks: [],
    })),
    instructions: null,
    record: { seq },
    context: null,
    changed: [],
    guards: [],
    budget: [],
    pending: [],
    grants: [],
    actions: [],
  })
  const packAll = (moments: readonly MomentView[]) => {
    const packer = new MomentPacker()
    for (const moment of moments) packer.addMoment(moment)
    return JSON.parse(JSON.stringify(packer.packed)) as typeof packer.packed
  }

  it('are restored unchanged, whatever is added, removed or changed between two records', () => {
    const transcript = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 6 })
    fc.assert(
      fc.property(fc.array(transcript, { minLength: 1, maxLength: 150 }), (transcripts) => {
        const moments = transcripts.map((texts, i) => bare(i + 1, texts))
        const packed = packAll(moments)
        expect(moments.map(({ seq }) => unpackMoment(packed, seq))).toEqual(moments)
      }),
      { numRuns: sampled(100) },
    )
  })

  it('are sent as the additions of each record', () => {
    const texts = Array.from({ length: 1_128 }, (_, i) => `message ${i}`)
    const moments = Array.from({ length: 128 }, (_, i) => bare(i + 1, texts.slice(0, 1_000 + i)))
    const packed = packAll(moments)
    expect(unpackMoment(packed, 100)).toEqual(moments[99])
    const sent = packed.moments.reduce((sum, { lists }) => sum + lists.flat().length, 0)
    // Two complete lists. Every other moment stores the kept length of each list, and one new message.
    expect(sent).toBeLessThan(2 * 1_128 + 128 * 6)
  })
})
