import fc from 'fast-check'
import { MomentPacker, unpackMoment } from '../../src/studio/pack-moments.js'
import type { MomentView } from '../../src/studio/protocol.js'
import { paths, type Route, parseRoute } from '../../src/studio/routes.js'
import { sampled } from '../support/extent.js'

describe('the addresses of the studio', () => {
  const id = 'ann:2026-05@home'

  it.each<[string, Route]>([
    [paths.chart, { method: 'GET', to: 'chart' }],
    [
      paths.sessions,
      { method: 'GET', to: 'sessions', list: { q: '', sort: 'status', offset: 0, limit: 60 } },
    ],
    [
      paths.found({ q: 'a&b tool:pay', sort: 'cost', offset: 60, limit: 10 }),
      { method: 'GET', to: 'sessions', list: { q: 'a&b tool:pay', sort: 'cost', offset: 60, limit: 10 } },
    ],
    [paths.session(id), { method: 'GET', to: 'session', id }],
    [paths.machine(id), { method: 'GET', to: 'machine', id }],
    [paths.moment(id, 7), { method: 'GET', to: 'moment', id, seq: 7 }],
    [paths.moments(id, 1, 64), { method: 'GET', to: 'moments', id, first: 1, last: 64 }],
    [paths.request(id, 7, true), { method: 'GET', to: 'request', id, seq: 7, all: true }],
    [paths.marks(id), { method: 'POST', to: 'marks', id }],
    [paths.views, { method: 'POST', to: 'views' }],
    [paths.answers(id), { method: 'POST', to: 'answers', id }],
    [paths.fork(id), { method: 'POST', to: 'fork', id }],
    [paths.compare(id, 'b'), { method: 'GET', to: 'compare', a: id, b: 'b' }],
    [paths.live(), { method: 'GET', to: 'live', id: null, after: 0 }],
    [paths.live(id, 12), { method: 'GET', to: 'live', id, after: 12 }],
  ])('%s is parsed, and written back unchanged', (address, route) => {
    expect(parseRoute(route.method, address)).toEqual(route)
    expect(parseRoute(route.method === 'GET' ? 'POST' : 'GET', address)).toBeNull()
  })

  it.each([
    '/',
    '/api',
    '/api/charts',
    '/api/chart/ann',
    '/api/sessions/',
    '/api/sessions/ann/moments',
    '/api/sessions/ann/moments/0',
    '/api/sessions/ann/moments/1.5',
    '/api/sessions/ann/moments/7/more',
    '/api/sessions/ann/secrets',
    '/api/sessions/ann/requests',
    '/api/sessions/ann/requests/0',
    '/api/sessions/%E0%A4%A',
    '/api/compare?a=ann',
    '//',
    '//evil.example/api/sessions',
    '/\\evil.example/api/sessions',
    'http://evil.example/api/sessions',
  ])('%s leads nowhere', (address) => {
    expect(parseRoute('GET', address)).toBeNull()
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
