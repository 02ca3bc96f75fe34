import { join } from 'node:path'
import * as fc from 'fast-check'
import Database from 'libsql'
import { fileStore } from '../../src/stores/file/index.js'
import { paths } from '../../src/studio/routes.js'
import { makeFolder, removeFolder } from '../stores/folder.js'
import { damaged, damages } from '../support/damaged-logs.js'
import { sampled } from '../support/extent.js'
import { eventful, rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'

const folder = makeFolder()
afterAll(() => removeFolder(folder))

test('no damaged summary makes the list or a session of the studio fail', async () => {
  const store = fileStore({ dir: folder })
  const { agent, close } = await rehearsedAgent(store, eventful)
  await agent.run('Pay the invoice.', { session: 'live', tags: { a: 'b' } }).result
  const database = new Database(join(folder, 'sessions.db'))
  const { summary } = database.prepare('SELECT summary FROM sessions').get() as { summary: string }
  const whole = {
    ...JSON.parse(summary),
    name: 'n',
    parent: 'p',
    agent: 'a',
    version: '1',
    value: 'v',
    wakeAt: 1,
  }
  const visitor = await visit({ store, agent })
  for (const damage of fc.sample(damages, sampled(200))) {
    const text = JSON.stringify(damaged(whole, damage))
    database.prepare('UPDATE sessions SET summary = ?').run(text)
    for (const address of [paths.found({ limit: 50 }), paths.session('live'), paths.moment('live', 3)]) {
      const { status, body } = await visitor.raw(address)
      expect(`${text} ${address} ${status} ${status === 200 ? '' : body}`).toMatch(/ (?:200|4\d\d) /)
    }
  }
  database.close()
  store.close()
  await close()
})
