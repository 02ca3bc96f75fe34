import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAgent, openaiChat } from '../../src/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import { buildAgents, startChild } from './child.js'
import { makeFolder, removeFolder } from './folder.js'
import { longTest } from '../support/extent.js'

const built = buildAgents()
afterAll(built.remove)

longTest('a process ends a run that hangs in its model call when another process cancels it', async () => {
  const dir = makeFolder()
  const provider = createServer()
  provider.listen(0, '127.0.0.1')
  await once(provider, 'listening')
  const baseURL = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/v1`
  const requested = once(provider, 'request')
  const child = startChild(
    built.url,
    dir,
    `
    const { createAgent, openaiChat } = await import(${JSON.stringify(built.url)})
    const model = openaiChat({ model: 'm', apiKey: 'none', baseURL: ${JSON.stringify(baseURL)} })
    const store = fileStore({ dir })
    const { state, reason } = await createAgent({ model, store }).run('Go.', { session: 's' }).result
    say({ state, reason })
  `,
  )
  const store = fileStore({ dir })
  try {
    // The process never gets an answer.
    const [, response] = (await requested) as [unknown, ServerResponse]
    const hungUp = once(response, 'close')
    const teller = createAgent({ model: openaiChat({ model: 'm', apiKey: 'none' }), store })
    expect(store.get('s')?.holder).toContain(String(child.process.pid))
    const message = { type: 'cancel', why: 'The user has closed the page.' } as const
    const toldAt = performance.now()
    expect(await teller.send('s', message)).toEqual({ message: 1, status: 'sent' })
    expect(await child.next()).toEqual({ state: 'CANCELLED', reason: 'cancelled' })
    const took = performance.now() - toldAt
    await hungUp
    expect((await child.ended).code).toBe(0)
    expect((await teller.replay('s')).run).toMatchObject({ state: 'CANCELLED' })
    expect(store.inbox?.read('s')).toEqual([])
    console.log(`cancelled from another process after ${Math.round(took)} ms`)
  } finally {
    child.process.kill('SIGKILL')
    await child.ended
    store.close?.()
    provider.closeAllConnections()
    provider.close()
    removeFolder(dir)
  }
})
