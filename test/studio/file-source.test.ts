import { createFileSource } from '../../src/studio/client/data-source.js'
import { paths } from '../../src/studio/routes.js'

const session = { session: { id: 'a:1', title: 'Why?' }, rows: [] }
const exported = {
  chart: { id: 'agent' },
  visits: { sessions: 1, counts: {} },
  session,
  moments: { messages: [], moments: [] },
}
const source = createFileSource({ textContent: JSON.stringify(exported) })

test('a page without exported data has a server', () => {
  expect(createFileSource(null)).toBeNull()
})

test('an exported file answers the requests about its session', async () => {
  expect(source?.isFile).toBe(true)
  expect(await source?.chart()).toEqual(exported.chart)
  expect(await source?.send(paths.visits)).toEqual(exported.visits)
  expect(await source?.send(paths.session('a:1'))).toEqual(session)
  expect(await source?.send(paths.end('a:1'))).toEqual({ view: session, moment: null })
  expect(await source?.send(paths.moments('a:1', 1, 128, 60))).toEqual(exported.moments)
  const list = { total: 1, known: 1, readOnly: 'This file is read-only.', sessions: [session.session] }
  expect(await source?.send(paths.found({}))).toMatchObject(list)
  expect(await source?.send(paths.found({ q: 'is:open & more?', limit: 5 }))).toMatchObject(list)
})

test.each([
  ['another session', () => source?.send(paths.session('a:2'))],
  ['the end of another session', () => source?.send(paths.end('a'))],
  ['a machine', () => source?.send(paths.machine('a:1'))],
  ['a request', () => source?.send(paths.request('a:1', 1, true))],
  ['a comparison', () => source?.send(paths.compare('a:1', 'a:1'))],
  ['a copy', () => source?.send(paths.share('a:1', { form: 'page', texts: true }))],
  ['saved views', () => source?.send(paths.views, { views: [] })],
  ['an answer', () => source?.send(paths.answers('a:1'), { type: 'cancel' })],
  ['a mark', () => source?.send(paths.marks('a:1'), { seq: 1, mark: 'good', note: '' })],
])('an exported file refuses %s', async (_, send) => {
  await expect(send()).rejects.toMatchObject({ code: 'read_only', message: 'This file is read-only.' })
})
