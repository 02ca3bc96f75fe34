import { memoryStore } from '../../src/index.js'
import { openDigests } from '../../src/core/sessions/store/log-digests.js'
import { fileStore } from '../../src/stores/file/index.js'
import type { SessionStore } from '../../src/stores/index.js'
import { describeDigests } from './digest-table.js'
import { makeFolder, removeFolder } from './folder.js'

let dir = ''
const opened: SessionStore[] = []

beforeEach(() => {
  dir = makeFolder()
})

afterEach(async () => {
  await Promise.all(opened.splice(0).map(async (store) => store.close()))
  removeFolder(dir)
})

describeDigests('the digests of fileStore', (now) => {
  const store: SessionStore = fileStore(now ? { dir, now } : { dir })
  opened.push(store)
  return store
})

it('a store in memory keeps none: who has it has the logs', async () => {
  expect(await openDigests(memoryStore())).toBeNull()
})
