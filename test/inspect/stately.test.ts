import { get, type OutgoingHttpHeaders } from 'node:http'
import { type AgentOptions, createAgent, defineShield, memoryStore, openaiChat } from '../../src/index.js'
import { SentMessages } from '../../src/inspect/sent.js'
import { SessionFrames } from '../../src/inspect/session-frames.js'
import { startStately, type StatelyView } from '../../src/inspect/stately.js'
import type { StatelyFrame } from '../../src/inspect/viewer.js'
import { type Scenario, startRehearsal } from '../../src/rehearsal/index.js'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

async function opened(): Promise<StatelyView> {
  const view = await startStately({ machine: { states: {} }, chart: '<svg/>' })
  ends.push(() => view.close())
  return view
}

/** The status of an answer, without its body. */
function statusOf(url: URL, headers: OutgoingHttpHeaders = {}): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, { headers }, (response) => {
      resolve(response.statusCode)
      response.destroy()
    }).on('error', reject)
  })
}

describe('the page of a session', () => {
  it('listens to whoever has its token, and to nobody else', async () => {
    const { url } = await opened()
    const { search } = new URL(url)
    expect(new URL(url).hostname).toBe('127.0.0.1')
    for (const path of ['/', '/chart', '/feed']) {
      expect(await statusOf(new URL(path + search, url))).toBe(200)
      for (const wrong of ['', '?token=', '?token=wrong', `${search}x`, `${search}&x`])
        expect(await statusOf(new URL(path + wrong, url))).toBe(403)
    }
    expect(await statusOf(new URL(`/other${search}`, url))).toBe(403)
  })

  it('is not there under another name, nor for a page from elsewhere', async () => {
    const { url } = await opened()
    const feed = new URL(`/feed${new URL(url).search}`, url)
    for (const host of ['rebound.example', `rebound.example:${feed.port}`, '127.0.0.1:1']) {
      expect(await statusOf(new URL(url), { host })).toBe(403)
      expect(await statusOf(feed, { host })).toBe(403)
    }
    expect(await statusOf(feed, { host: `localhost:${feed.port}` })).toBe(200)
    expect(await statusOf(feed, { origin: 'https://editor.stately.ai' })).toBe(403)
    expect(await statusOf(feed, { origin: feed.origin })).toBe(200)
  })

  it('lets nothing run but its own script, and loads nothing but the frame', async () => {
    const { url } = await opened()
    const page = await fetch(url)
    const policy = page.headers.get('content-security-policy')
    const [nonce] = /(?<=nonce=")[^"]+/.exec(await page.text()) ?? ['none']
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain(`script-src 'nonce-${nonce}'`)
    expect(policy).toContain('frame-src https://editor.stately.ai;')
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
  })

  it('tells a late viewer of the session that is shown now, and no other', async () => {
    const view = await opened()
    view.tell({ type: 'session', title: 'one', isLive: true })
    view.tell({ type: 'problem', text: 'of one' })
    view.tell({ type: 'session', title: 'two', isLive: true })
    view.tell({ type: 'problem', text: 'of two' })
    const feed = await fetch(new URL(`/feed${new URL(view.url).search}`, view.url))
    const told = (await feed.body?.getReader().read())?.value
    const messages = new TextDecoder().decode(told).trim().split('\n\n')
    expect(messages.map((message) => JSON.parse(message.replace('data: ', '')))).toEqual([
      { type: 'machine', machine: { states: {} } },
      { type: 'session', title: 'two', isLive: true },
      { type: 'problem', text: 'of two' },
    ])
  })

  it('says so when the port is taken', async () => {
    const { port } = new URL((await opened()).url)
    const again = startStately({ machine: {}, chart: '', port: Number(port) })
    await expect(again).rejects.toMatchObject({ code: 'cannot_listen' })
  })
})

test('what was sent first stays, whatever is forgotten', () => {
  const sent = new SentMessages(2)
  const texts = ['machine', 'session', ...Array.from('abcdef', (letter) => letter.repeat(4_000_000))]
  for (const text of texts) sent.add(text)
  expect(Array.from(sent, (text) => text.slice(0, 7))).toEqual([
    'machine',
    'session',
    'ddddddd',
    'eeeeeee',
    'fffffff',
  ])
  sent.clear()
  expect([...sent]).toEqual([])
})

describe('what is told of a record', () => {
  async function framesOf(options: Partial<AgentOptions>, turns: Scenario['turns'], withContext: boolean) {
    const rehearsal = await startRehearsal({ turns })
    ends.push(() => rehearsal.close())
    const store = memoryStore()
    const model = openaiChat({ model: 'm', baseURL: rehearsal.url })
    const agent = createAgent({ model, store, ...options })
    await agent.run('Say it.', { session: 's' }).result
    const frames = new SessionFrames('s', withContext)
    const read = async (): Promise<StatelyFrame[]> => {
      const all: StatelyFrame[] = []
      for await (const frame of frames.next(store)) all.push(frame)
      return all
    }
    return { agent, store, read }
  }

  it('is a snapshot of each, from the first run on, and later only what is new', async () => {
    const { agent, store, read } = await framesOf({}, [{ text: 'Yes.' }, { text: 'Again.' }], false)
    const first = await read()
    expect(first.map(({ seq }) => seq)).toEqual(
      store
        .read('s')
        .slice(1)
        .map(({ seq }) => seq),
    )
    expect(await read()).toEqual([])
    await agent.run('Once more.', { session: 's' }).result
    const second = await read()
    expect(second[0]).toMatchObject({ seq: first.length + 2, event: { type: 'xstate.init' } })
    expect(second.at(-1)).toMatchObject({ snapshot: { value: 'COMPLETED', status: 'done' } })
  })

  it('is not what a shield withholds', async () => {
    const hide = defineShield({ name: 'hide', check: () => ({ action: 'redact', content: 'It is […].' }) })
    const { read } = await framesOf({ shields: { output: [hide] } }, [{ text: 'The word is Rosebud.' }], true)
    const frames = await read()
    expect(JSON.stringify(frames)).not.toContain('Rosebud')
    expect(JSON.stringify(frames)).toContain('[withheld: ')
    expect(JSON.stringify(frames.at(-1))).toContain('It is […].')
  })
})
