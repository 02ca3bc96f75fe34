import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore } from '../../src/index.js'
import type { SessionsView } from '../../src/studio/protocol.js'
import { paths } from '../../src/studio/routes.js'
import { visit } from './visitor.js'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'statewright-views-'))
})
afterAll(() => rm(folder, { recursive: true }))

const views = [{ name: 'Failed', q: 'state:error', sort: '-cost' }]
const read = async (visitor: Awaited<ReturnType<typeof visit>>) =>
  (await visitor.get<SessionsView>(paths.sessions)).views

it('stores saved views in the file, for the next studio', async () => {
  const viewsFile = join(folder, 'deep', 'views.json')
  const visitor = await visit({ store: memoryStore(), viewsFile })
  expect(await read(visitor)).toEqual([])
  expect(await visitor.post(paths.views, { views })).toMatchObject({ status: 200, views })
  expect(await read(visitor)).toEqual(views)
  expect(await read(await visit({ store: memoryStore(), viewsFile }))).toEqual(views)
  expect(JSON.parse(await readFile(viewsFile, 'utf8'))).toEqual({ views })
})

it('keeps them in memory without a file, and starts empty with a damaged file', async () => {
  const visitor = await visit({ store: memoryStore() })
  await visitor.post(paths.views, { views })
  expect(await read(visitor)).toEqual(views)
  const viewsFile = join(folder, 'damaged.json')
  await writeFile(viewsFile, '{"views": [{}]}')
  expect(await read(await visit({ store: memoryStore(), viewsFile }))).toEqual([])
})

it.each([
  [{}, 'views'],
  [{ views: [{ ...views[0], name: ' ' }] }, 'views.0.name'],
  [{ views: [{ ...views[0], sort: 'colour' }] }, 'views.0.sort'],
  [{ views: [{ ...views[0], q: 'x'.repeat(1_001) }] }, 'views.0.q'],
  [{ views, more: 1 }, ''],
])('refuses %j', async (body, key) => {
  const visitor = await visit({ store: memoryStore() })
  expect(await visitor.post(paths.views, body)).toMatchObject({
    status: 400,
    error: { code: 'invalid_input', key },
  })
})

it('states why a file cannot be written', async () => {
  await writeFile(join(folder, 'taken'), '')
  const visitor = await visit({ store: memoryStore(), viewsFile: join(folder, 'taken', 'views.json') })
  const { status, error } = await visitor.post(paths.views, { views })
  expect([status, error?.code]).toEqual([503, 'store_unavailable'])
  expect(await read(visitor)).toEqual([])
})
