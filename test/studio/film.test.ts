import fc from 'fast-check'
import { systemClock } from '../../src/core/base/clock.js'
import { forkSession } from '../../src/core/sessions/fork-session.js'
import { readSessionAt } from '../../src/core/sessions/replay-session.js'
import { memoryStore } from '../../src/index.js'
import { createSessionData, exportSession } from '../../src/studio/export-session.js'
import { drawFilm, listScenes } from '../../src/studio/session-film.js'
import { listVisited } from '../../src/studio/session-card.js'
import { drawVisitedChart } from '../../src/studio/visited-chart.js'
import { paths } from '../../src/studio/routes.js'
import type { ExportedSession, RecordRow, SharedView } from '../../src/studio/protocol.js'
import { createPlace } from '../cli/kept.js'
import { elementsOf } from '../diagram/elements.js'
import { sampled } from '../support/extent.js'
import { damage, eventful, rehearsedAgent } from './rehearsed.js'
import { visit } from './visitor.js'

/** A session with all kinds of records that waits for an approval. */
async function played(): Promise<{ store: ReturnType<typeof memoryStore>; data: ExportedSession }> {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, eventful)
  await agent.run('Pay <script>alert(1)</script> \u202ethe "invoice" & go.', { session: 's' }).result
  await close()
  return { store, data: await createSessionData(store, 's') }
}

/** The elements and attributes of an inert film: texts, boxes and lines. */
const elements = new Set(['svg', 'style', 'rect', 'text', 'g', 'path', 'circle'])
const words = 'fill font-family font-size font-weight aria-label role data-state data-transition'
const lines = 'd x y r rx width height viewBox stroke stroke-width opacity transform xmlns class style'
const attributes = new Set(`${words} ${lines}`.split(' '))

/** No part of a film executes, links or loads anything. Style sheets contain no texts. */
function expectInert(film: string): void {
  expect(elementsOf(film).filter((name) => !elements.has(name))).toEqual([])
  const tags = [...film.matchAll(/<[a-z][^>]*>/g)].flatMap(([tag]) => [
    ...tag.matchAll(/ ([^\s"=]+)="([^"]*)"/g),
  ])
  expect(tags.filter(([, name = '']) => !attributes.has(name))).toEqual([])
  const styles = [
    ...tags.flatMap(([, name, value = '']) => (name === 'style' ? [value] : [])),
    ...Array.from(film.matchAll(/<style>([^<]*)<\/style>/g), ([, style = '']) => style),
  ]
  for (const style of styles) {
    expect(style).toMatch(/^[\s\w.:;,%@(){}#"=[\]-]*$/)
    expect(style).not.toMatch(/url\(|@import/)
  }
  expect(film).not.toMatch(/[\0-\x08\x0b-\x1f\x7f-\x9f\p{Cf}\p{Cs}\uFFFE\uFFFF]/u)
}

test('a film shows the states of a run in sequence, its messages, and the verdict at its end', async () => {
  const { store } = await played()
  const visitor = await visit({ store })
  const { content: film } = await visitor.get<SharedView>(paths.share('s', { form: 'film', texts: true }))
  expectInert(film)
  expect(film).toContain('Pay &lt;script&gt;alert(1)&lt;/script&gt; the')
  const reported = [...film.matchAll(/<text [^>]*font-size="16">([^<]*)</g)].map(([, path]) => path)
  expect(reported).toEqual(
    expect.arrayContaining([
      'RUNNING › asking › requesting',
      'RUNNING › asking › backingOff',
      'WAITING_FOR_TOOL › executing',
      'WAITING_FOR_INPUT › approval',
    ]),
  )
  expect(film).toContain('First I look it up.')
  // With reduced motion, the end is visible and the earlier frames are hidden.
  expect(film).toContain('@media (prefers-reduced-motion: reduce){.f{animation:none}}')
  const parts = film.split('<g class="f"')
  const partOf = (words: string) => parts.find((part) => part.includes(words))
  expect(partOf('Waiting for you to approve pay.')).toMatch(/^ opacity="1"/)
  expect(partOf('RUNNING › asking › backingOff')).toMatch(/^ opacity="0"/)
  expect(film).toContain('@media (prefers-color-scheme: dark)')
})

test('a film is inert for any titles, labels, tools, texts and verdicts', async () => {
  const { data } = await played()
  const { session: view, moments } = data
  const hostile = fc.oneof(
    fc.array(fc.integer({ min: 0, max: 0xffff })).map((codes) => String.fromCharCode(...codes)),
    fc
      .array(
        fc.constantFrom(
          '</text><script>alert(1)</script>',
          '</style><svg onload=alert(1)>',
          '"><image href="javascript:alert(1)"/>',
          '\u202e',
          '\u2066',
          '\u0000',
          '\u001b[2J',
          ']]>',
          '<!--',
          '&#x3c;',
          '} * { background: u\u200brl(//x) }',
          '長'.repeat(90),
          ' ',
        ),
      )
      .map((parts) => parts.join('')),
  )
  fc.assert(
    fc.property(hostile, hostile, hostile, (title, message, label) => {
      const parts = moments.parts.map((part) =>
        typeof part === 'object' && part !== null && 'role' in part && 'calls' in part
          ? {
              ...part,
              text: message,
              calls: [{ name: label, arguments: message, result: title, status: message }],
            }
          : part,
      )
      const film = drawFilm({
        ...data,
        moments: { ...moments, parts },
        session: {
          ...view,
          session: { ...view.session, title },
          verdict: { ...view.verdict, text: message },
          rows: view.rows.map((row) => ({ ...row, label })),
        },
      })
      expectInert(film)
    }),
    { numRuns: sampled(50) },
  )
})

/** Random records of a few kinds, because the shapes of logs are unbounded. */
const rowsOf = (kinds: readonly number[], stay: number): RecordRow[] =>
  kinds.map((kind, i) => ({
    seq: i + 1,
    at: 1_000 + i * stay,
    type: 'event',
    label: `kind ${kind}`,
    from: [],
    to: kind === 0 ? [] : [`STATE_${kind}`],
    transitionIds: [`to ${kind}`],
    state: '',
    step: 1,
    run: 1,
    tokens: i,
    cost: null,
    paid: 0,
    flags: [],
    started: [],
    calls: [],
  }))

test('a film has at most 48 scenes and lasts a minute, and states how each record is shown', () => {
  const kinds = fc.oneof(
    fc.array(fc.nat(4), { maxLength: 300 }),
    // Repeated turns of a loop.
    fc
      .tuple(fc.array(fc.nat(9), { minLength: 1, maxLength: 30 }), fc.integer({ min: 1, max: 40 }))
      .map(([turn, times]) => Array.from({ length: times }, () => turn).flat()),
  )
  fc.assert(
    fc.property(kinds, fc.nat(9_000), (input, stay) => {
      const rows = rowsOf(input, stay)
      const shown = rows.filter(({ to }) => to.length > 0)
      const scenes = listScenes(rows)
      expect(scenes.length).toBeLessThanOrEqual(48)
      expect(scenes.reduce((sum, { count, skipped }) => sum + count + skipped, 0)).toBe(shown.length)
      expect(scenes.reduce((sum, { seconds }) => sum + seconds, 0)).toBeLessThan(60.001)
      for (const { seconds } of scenes) expect(seconds).toBeGreaterThanOrEqual(0.6)
      const seqs = scenes.map(({ row }) => row.seq)
      expect(seqs).toEqual(seqs.toSorted((a, b) => a - b))
      expect(seqs.at(-1)).toBe(shown.at(-1)?.seq)
    }),
  )
})

test('a film of a session of 5,000 records shows each turn of the loop once, and is at most 300 kB', async () => {
  const { data } = await played()
  const { session: view } = data
  const rows = rowsOf(Array.from({ length: 1_250 }, () => [1, 2, 3, 3]).flat(), 40)
  expect(listScenes(rows).map(({ count, row }) => [row.seq, count])).toEqual([
    [4_997, 1_250],
    [4_998, 1_250],
    [5_000, 2_500],
  ])
  // No repetition, so the middle is omitted.
  const states = data.chart.states.map(({ path }) => path)
  const transitions = data.chart.transitions.map(({ id }) => id)
  const long = rowsOf(
    Array.from({ length: 5_000 }, (_, i) => i + 1),
    40,
  ).map((row) => ({
    ...row,
    label: `${row.label} ${'长'.repeat(80)}`,
    to: [states[row.seq % states.length] ?? ''],
    transitionIds: transitions.slice(row.seq % 100, (row.seq % 100) + 5),
  }))
  const seqs = data.moments.moments
  const text = 'Words without end. '.repeat(2_000)
  const parts = data.moments.parts.map((part) =>
    typeof part === 'object' && part !== null && 'role' in part ? { ...part, text } : part,
  )
  const moments = long.map(({ seq }) => ({ ...(seqs[seq % seqs.length] ?? fail()), seq }))
  const film = drawFilm({ ...data, moments: { parts, moments }, session: { ...view, rows: long } })
  expect(film).toContain('4,952 records skipped')
  expect(film.length).toBeLessThan(300_000)
})

test('a card and a film draw the reason for the end in any state, and highlight its label', async () => {
  const store = memoryStore()
  const { agent, close } = await rehearsedAgent(store, eventful)
  await agent.run('Pay the invoice.', { session: 's' }).result
  const run = await agent.resume('s')
  run.cancel()
  await run.result
  await close()
  const data = await createSessionData(store, 's')
  const picture = drawVisitedChart(data.chart, listVisited(data)).replaceAll(/<title>[^<]*<\/title>/g, '')
  expect(picture).toContain('>From any state</text>')
  expect(picture).toContain('>CANCEL → CANCELLED</text>')
  // A line leads from there to the end state below.
  expect(picture).toMatch(
    /From any state[^]*data-state="CANCELLED"[^]*<g class="way" data-transition="\(root\): CANCEL → CANCELLED"><path class="line" d="M\d/,
  )
  // Clicks never request a missing state.
  expect(picture).not.toContain('data-state="(root)"')
  expect(await exportSession(store, 's', { form: 'card' })).toContain('>From any state</text>')
  const film = drawFilm(data)
  expectInert(film)
  expect(film).toMatch(/<g class="f" opacity="1"[^>]*><text [^>]*fill="#0969da"[^>]*>CANCEL → CANCELLED</)
})

test('a film highlights the labels that an omitted part has visited', async () => {
  const { data } = await played()
  const [left] = data.chart.transitions.filter(({ id }) => id.endsWith('→ RUNNING'))
  if (!left) throw new Error('The chart has no transition to RUNNING.')
  const rows = rowsOf(
    Array.from({ length: 100 }, (_, i) => i + 1),
    40,
  ).map((row) => ({ ...row, to: ['RUNNING'], transitionIds: row.seq === 50 ? [left.id] : [] }))
  const moment = data.moments.moments[0] ?? fail()
  const moments = { ...data.moments, moments: rows.map(({ seq }) => ({ ...moment, seq })) }
  const film = drawFilm({ ...data, moments, session: { ...data.session, rows } })
  expect(film).toContain('52 records skipped')
  expect(film).toMatch(/<text [^>]*fill="#0969da"[^>]*font-size="12">[^<]* → RUNNING</)
})

function fail(): never {
  throw new Error('The session has no moments.')
}

describe('sessions export --film', () => {
  test('writes a film, without texts on request', async () => {
    const { run, withStore } = await createPlace()
    await withStore(async (store) => {
      const { agent, close } = await rehearsedAgent(store, [{ text: 'Blue, of course.' }])
      await agent.run('Which colour?', { session: 's' }).result
      await close()
    })
    const whole = await run(['sessions', 'export', 's', '--film'])
    expect(whole).toMatchObject({ code: 0 })
    for (const words of ['Which colour?', 'Blue, of course.', 'COMPLETED', 'The model ended its turn'])
      expect(whole.out).toContain(words)
    expectInert(whole.out)
    const bare = await run(['sessions', 'export', 's', '--as', 'film', '--without-text'])
    expect(bare.out).toMatch(/^<svg /)
    expect(bare.out).not.toMatch(/colour\?|Blue/)
  })

  test('explains why there is no film', async () => {
    const { run, withStore } = await createPlace()
    const forked = await withStore(async (store) => {
      const { agent, close } = await rehearsedAgent(store, [{ text: 'Blue, mostly.' }])
      await agent.run('Which colour?', { session: 'short' }).result
      await close()
      await damage(store, 'damaged')
      const folded = await readSessionAt(store, 'short', 1)
      return forkSession({ store, clock: systemClock }, { sessionId: 'short', folded })
    })
    const refused = async (...args: string[]): Promise<string> => {
      const { code, out, err } = await run(['sessions', 'export', ...args, '--film'])
      expect([code, out]).toEqual([2, ''])
      return err
    }
    expect(await refused(forked)).toContain('This session has no run to show')
    expect(await refused('damaged')).toMatch(/A film needs a readable log\. .*record 3 is damaged/)
    expect(await refused('damaged', '--without-text')).toContain("This session's log is damaged.")
    expect(await refused('shart')).toContain("Did you mean 'short'?")
    expect(await refused('short', '--card')).toContain('--card and --film cannot be combined')
    expect(await refused('short', '--as', 'test')).toContain('cannot be combined')
    expect(await refused('short', '--runner', 'jest')).toContain('--runner needs --as test.')
  })

  test('an export of an unknown session is refused with its code', async () => {
    await expect(exportSession(memoryStore(), 'nobody', { form: 'film' })).rejects.toMatchObject({
      code: 'unknown_session',
    })
  })
})
