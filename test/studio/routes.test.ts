import { MomentPacker, unpackMoment } from '../../src/studio/pack-moments.js'
import type { MomentView } from '../../src/studio/protocol.js'
import { paths, type Route, parseRoute } from '../../src/studio/routes.js'

describe('the addresses of the studio', () => {
  const id = 'ann:2026-05@home'

  it.each<[string, Route]>([
    [paths.chart, { method: 'GET', to: 'chart' }],
    [
      paths.sessions,
      { method: 'GET', to: 'sessions', list: { q: '', sort: 'standing', offset: 0, limit: 60 } },
    ],
    [
      paths.found({ q: 'a&b tool:pay', sort: 'cost', offset: 60, limit: 10 }),
      { method: 'GET', to: 'sessions', list: { q: 'a&b tool:pay', sort: 'cost', offset: 60, limit: 10 } },
    ],
    [paths.session(id), { method: 'GET', to: 'session', id }],
    [paths.moment(id, 7), { method: 'GET', to: 'moment', id, seq: 7 }],
    [paths.moments(id, 1, 64), { method: 'GET', to: 'moments', id, first: 1, last: 64 }],
    [paths.answers(id), { method: 'POST', to: 'answers', id }],
    [paths.fork(id), { method: 'POST', to: 'fork', id }],
    [paths.compare(id, 'b'), { method: 'GET', to: 'compare', a: id, b: 'b' }],
    [paths.live(), { method: 'GET', to: 'live', id: null, after: 0 }],
    [paths.live(id, 12), { method: 'GET', to: 'live', id, after: 12 }],
  ])('%s is read as it is written', (address, route) => {
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
    '/api/sessions/%E0%A4%A',
    '/api/compare?a=ann',
    '//',
    '//evil.example/api/sessions',
    '/\\evil.example/api/sessions',
    'http://evil.example/api/sessions',
  ])('%s means nothing', (address) => {
    expect(parseRoute('GET', address)).toBeNull()
  })
})

it('what several moments have in common is sent once', () => {
  const message = {
    role: 'user',
    id: 'm1',
    at: 1,
    text: 'Hello',
    reasoning: '',
    calls: [],
    marks: [],
  } as const
  const moment = (seq: number): MomentView => ({
    seq,
    transcript: [{ ...message, media: [], calls: [], marks: [] }],
    instructions: { text: 'Be brief.', from: 'agent' },
    record: { type: 'event', seq },
    context: { steps: seq, config: { limits: { maxSteps: 20 } } },
    changed: ['steps'],
    guards: [],
    budget: [{ name: 'steps', used: seq, limit: 20, children: 0 }],
    pending: [],
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
