import fc from 'fast-check'
import { defineShield, memoryStore, type SessionStore } from '../../src/index.js'
import {
  createSessionData,
  exportSession,
  type ShareOptions,
  withoutTexts,
} from '../../src/studio/export-session.js'
import { measureText } from '../../src/diagram/svg-parts.js'
import { drawCard } from '../../src/studio/session-card.js'
import { paths } from '../../src/studio/routes.js'
import type { SharedView } from '../../src/studio/protocol.js'
import { createPlace } from '../cli/kept.js'
import { eventful, rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'

const forms = ['page', 'card', 'film'] as const

/** The shared content. For a page, only its visible content, because its script is not always built. */
async function share(store: SessionStore, id: string, options: ShareOptions): Promise<string> {
  if (options.form !== 'page') return exportSession(store, id, options)
  const data = await createSessionData(store, id)
  return JSON.stringify(options.texts === false ? withoutTexts(data) : data)
}

test('a card shows the prompt, the outcome and the cost, and is inert', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, eventful)
  await agent.run('Pay <script>alert(1)</script> \u202ethe "invoice" & go.', { session: 's' }).result
  await close()
  const visitor = await visit({ store })
  const { content } = await visitor.get<SharedView>(paths.share('s', { form: 'card', texts: true }))
  expect(content).toMatch(/^<svg [^]*<\/svg>\n$/)
  expect(content).toContain('Pay &lt;script&gt;alert(1)&lt;/script&gt; the')
  expect(content).toContain('Waiting for you to approve pay.')
  for (const words of ['WAITING_FOR_INPUT', 'request', 'steps', 'tokens', 'cost'])
    expect(content).toContain(words)
  expect(content).not.toMatch(/<script|<style|<image|<foreignObject|href=|\son\w+=|\u202e/)
  expect((await visitor.raw(`${paths.session('s')}/share?form=poem`)).status).toBe(404)
  expect((await visitor.raw(paths.share('nobody', { form: 'card', texts: true }))).status).toBe(404)
})

test('a card is a picture for any title, and has room for all lanes', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, eventful)
  await agent.run('Pay.', { session: 's' }).result
  await close()
  const data = await createSessionData(store, 's')
  const { session: view } = data
  const [bar] = view.bars
  if (!bar) throw new Error('The session has no bars.')
  const crowd = (['model', 'tools', 'children', 'waits'] as const).flatMap((lane, kind) =>
    Array.from({ length: 6 }, (_, i) => ({ ...bar, id: 1_000 + kind * 10 + i, lane })),
  )
  const text = fc.array(fc.integer({ min: 0, max: 0xffff })).map((codes) => String.fromCharCode(...codes))
  fc.assert(
    fc.property(text, text, (title, words) => {
      const session = { ...view.session, title }
      const verdict = { ...view.verdict, text: words }
      const card = drawCard({ ...data, session: { ...view, session, verdict, bars: crowd } })
      expect(card).not.toMatch(/[\0-\x08\x0b-\x1f\p{Cs}\uFFFE\uFFFF]/u)
      expect(card.split('<').every((part) => part === '' || /^\/?[a-z]+[ >/]/.test(part))).toBe(true)
      for (const [, y = '', high = ''] of card.matchAll(
        /<rect [^>]*y="([\d.]+)"[^>]*height="([\d.]+)" rx="3" /g,
      ))
        expect(Number(y) + Number(high)).toBeLessThan(600)
    }),
  )
})

test.each(['W', '長', 'wide words '])(
  'a card with a title of many %j ends its lines before the chart',
  async (part) => {
    const store = memoryStore()
    const { agent, close } = await rehearsedAgent(store, [{ text: 'Yes.' }])
    await agent.run('Go.', { session: 's' }).result
    await close()
    const { session: view, ...data } = await createSessionData(store, 's')
    const session = { ...view.session, title: part.repeat(200) }
    const verdict = { ...view.verdict, text: part.repeat(400) }
    const card = drawCard({ ...data, session: { ...view, session, verdict } })
    const lines = [
      ...card.matchAll(/<text x="(44|64)" [^>]*font-size="(34|19)"( font-weight="bold")?>([^<]*)</g),
    ]
    expect(lines).toHaveLength(6)
    for (const [, x, size, bold, line = ''] of lines)
      expect(Number(x) + measureText(line, Number(size), bold !== undefined)).toBeLessThan(760)
    expect(lines.filter(([, , , , line]) => line?.endsWith('…'))).toHaveLength(2)
  },
)

test.each(forms)('without texts, a %s contains no text of people, models or tools', async (form) => {
  const store = memoryStore()
  const turns = [
    {
      text: 'Zebra one.',
      toolCalls: [{ id: 'zebra-13', name: 'look_up', arguments: { what: 'zebra two' } }],
    },
    { toolCalls: [{ name: 'poll_nothing', arguments: {} }] },
    { toolCalls: [{ name: 'zebra_eleven', arguments: {} }] },
    { text: 'Zebra three.', toolCalls: [{ name: 'pay', arguments: { amount: 1, to: 'zebra four' } }] },
  ]
  const { agent, close } = await rehearsedAgent(store, turns, { instructions: 'Zebra five.' })
  const run = agent.run('Zebra six.', { session: 'zebra-12', tags: { user: 'zebra seven' } })
  const { pending = [] } = await run.result
  expect(pending).toHaveLength(1)
  const again = await agent.resume('zebra-12')
  again.steer('Zebra eight.')
  for (const { callId } of pending) again.reject(callId, 'Zebra nine.')
  await again.result
  await close()
  store.setTitle?.('zebra-12', 'Zebra ten')
  const whole = await share(store, 'zebra-12', { form })
  expect(/zebra/i.test(whole)).toBe(true)
  const bare = await share(store, 'zebra-12', { form, texts: false })
  expect(/.{0,40}zebra.{0,20}/i.exec(bare)).toBeNull()
  const stored = {
    page: ['"look_up"', '"pay"'],
    card: ['Waiting for input'],
    film: ['>look_up ', '>rejected pay<'],
  }[form]
  for (const words of stored) expect(bare.includes(words)).toBe(true)
})

test.each(forms)('without texts, a %s contains no word of the answer that ended it', async (form) => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, [{ text: 'Zebra.' }])
  await agent.run('Go.', { session: 's' }).result
  await close()
  expect(await share(store, 's', { form })).toContain('Zebra')
  expect(await share(store, 's', { form, texts: false })).not.toContain('Zebra')
})

test('without texts, no label names an agent, a skill, a session or a shared budget', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, [{ text: 'Yes.' }])
  await agent.run('Go.', { session: 's' }).result
  await close()
  const { session: view, ...data } = await createSessionData(store, 's')
  const [row, bar] = [view.rows[0], view.bars[0]]
  if (!row || !bar) throw new Error('The session has no records.')
  const until = 'until 27 Nov 2026, 09:00 UTC'
  const labels = [
    'forked from zebra at 4',
    'handed to zebra',
    'skill zebra loaded',
    'the shared budget zebra is used up',
    `waiting for the shared budget zebra ${until}`,
  ]
  const bars = [{ ...bar, lane: 'waits' as const, label: `budget zebra until it is ${until}` }]
  const rows = [...labels.map((label) => ({ ...row, label })), { ...row, label: 'run 2, branch 1: zebra: x' }]
  const { session } = withoutTexts({ ...data, session: { ...view, rows, bars } })
  expect([...session.rows, ...session.bars].map(({ label }) => label)).toEqual([
    'forked',
    'handed to another agent',
    'skill loaded',
    'the shared budget is used up',
    `waiting for the shared budget ${until}`,
    'run 2, branch 1',
    `budget ${until}`,
  ])
})

test.each(forms)('no %s contains withheld or redacted text', async (form) => {
  const key = `sk-proj-${'a1B2c3D4'.repeat(5)}`
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, [{ text: `It is ${key}.` }])
  await agent.run(`Keep ${key}.`, { session: 'key' }).result
  await close()
  const hidden = await rehearsedAgent(store, [{ text: 'Yes.' }], {
    shields: { input: [defineShield({ name: 'slow', check: () => new Promise(() => undefined) })] },
  })
  const run = hidden.agent.run('The falcon flies.', { session: 'held' })
  await run.started
  for (const texts of [true, false]) {
    expect(await share(store, 'key', { form, texts })).not.toContain(key)
    expect(await share(store, 'held', { form, texts })).not.toContain('falcon')
  }
  run.cancel()
  await hidden.close()
})

test('the command line writes a card, and lists the formats without texts', async () => {
  const { run, withStore } = await createPlace()
  await withStore(async (store) => {
    const { agent, close } = await rehearsedAgent(store, [{ text: 'Blue.' }])
    await agent.run('Which colour?', { session: 's' }).result
    await close()
  })
  const whole = await run(['sessions', 'export', 's', '--card'])
  expect(whole).toMatchObject({ code: 0 })
  expect(whole.out).toContain('Which colour?')
  expect(whole.out).toContain('“Blue.”')
  const bare = await run(['sessions', 'export', 's', '--as', 'card', '--without-text'])
  expect(bare.out).toMatch(/^<svg /)
  expect(bare.out).not.toMatch(/colour|Blue/)
  const wrong = await run(['sessions', 'export', 's', '--markdown', '--without-text'])
  expect(wrong).toMatchObject({ code: 2 })
  expect(wrong.err).toContain('--without-text needs --html, --card or --film.')
})
