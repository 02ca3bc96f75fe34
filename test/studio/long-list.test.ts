import { fileStore } from '../../src/stores/file/index.js'
import type { SessionStore } from '../../src/index.js'
import { makeFolder, removeFolder } from '../stores/folder.js'
import { describeLongList } from './long-list.js'

let dir = ''
const opened: SessionStore[] = []

beforeEach(() => {
  dir = makeFolder()
})

afterEach(async () => {
  await Promise.all(opened.splice(0).map(async (store) => store.close()))
  removeFolder(dir)
})

describeLongList('a long list of sessions in a folder', () => {
  const store = fileStore({ dir })
  opened.push(store)
  return store
})
