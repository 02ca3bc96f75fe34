import type { ProgressConfig } from '../../guards/progress-config.js'
import type { GuardrailsConfig } from '../../guards/roster.js'
import { defaultConfig } from '../../src/core/config/resolve-config.js'
import { noDetectors } from '../../src/testing/agent/agent-inputs.js'
import { fails, isDenied, isRefused, isUnknown, only, play, repeat, type Step, timesOut } from './facts.js'

const { progress } = defaultConfig.guardrails
if (progress === null) throw new Error('The default policy is on.')

const off: ProgressConfig = { ...progress, ...noDetectors }

/** One detector alone, or several. */
function watch(...rules: (keyof ProgressConfig)[]): GuardrailsConfig {
  return {
    ...only(),
    progress: { ...off, ...Object.fromEntries(rules.map((rule) => [rule, progress?.[rule]])) },
  }
}
const everything: GuardrailsConfig = { ...only(), progress }

const said = (batches: Parameters<typeof play>[0], config: GuardrailsConfig) =>
  play(batches, config).said.map((one) => one.replace(' no_progress', ''))
const many = <Item>(count: number, item: (n: number) => Item): Item[] =>
  Array.from({ length: count }, (_, n) => item(n))
const look: Step = { name: 'look' }
const fresh = (n: number): Step => ({ name: 'read', args: { n }, content: `page ${n}` })
const byPerson = { ...isRefused, refusedBy: 'other' as const }

describe('one batch over and over', () => {
  test('is nudged at the third, refused from the sixth, and halted at the twenty-first', () => {
    const { said: all, calls } = play(repeat(40, look), watch('stale'))
    expect(calls).toBe(5)
    expect(all[0]).toBe('3: no_progress nudge')
    expect(all[1]).toBe('6 asked: no_progress block')
    expect(all.at(-1)).toBe('21: no_progress halt')
  })

  test('is the same whatever the order of its calls, and with other blanks', () => {
    const [a, b] = [
      { ...look, args: { at: 'a' } },
      { ...look, args: { at: 'b\nc' } },
    ]
    const spaced = { ...look, args: { at: ' b  \nc ' } }
    expect(
      said(
        [
          [a, b],
          [b, a],
          [spaced, a],
        ],
        watch('stale'),
      ),
    ).toEqual(['3: nudge'])
  })

  test('is no longer when something new comes: another call, or another result', () => {
    for (const news of [fresh(1), { ...look, content: 'other' }, { ...look, ...fails }]) {
      expect(said([look, look, news, look, look], watch('stale'))).toEqual(['5: nudge'])
    }
    expect(said([...repeat(5, look), fresh(1), look], watch('stale'))).toEqual(['3: nudge'])
  })

  test('is one that fails, too, but not one that fails in passing', () => {
    expect(said(repeat(3, { ...look, ...fails }), watch('stale'))).toEqual(['3: nudge'])
    expect(said(repeat(30, { ...look, ...timesOut }), watch('stale', 'recurring', 'mostly'))).toEqual([])
  })

  test('counts double when somebody refuses it: it is asked three times', () => {
    const batches = repeat(4, { name: 'pay', ...byPerson })
    expect(said(batches, watch('stale'))).toEqual(['2: nudge', '4 asked: block'])
  })

  test('counts for a third when it waits, and is then never refused', () => {
    const wait = { name: 'wait', durationMs: 3000, content: 'running' }
    expect(said(repeat(61, wait), watch('stale'))).toEqual(['7: nudge', '61: halt'])
    expect(said(repeat(3, { ...wait, durationMs: 2999 }), watch('stale'))).toEqual(['3: nudge'])
    expect(said(repeat(3, { ...wait, content: 'x'.repeat(301) }), watch('stale'))).toEqual(['3: nudge'])
    expect(said(repeat(3, { ...wait, ...fails }), watch('stale'))).toEqual(['3: nudge'])
    const never = { ...watch('stale'), progress: { ...off, stale: progress.stale, waiting: null } }
    expect(said(repeat(3, wait), never)).toEqual(['3: nudge'])
  })

  test('that says that something goes on is nudged at once, halted late, and never refused', () => {
    const poll = { name: 'status', readOnly: false, content: 'queued' }
    expect(said(repeat(200, poll), watch('stale'))).toEqual(['3: nudge', '183: halt'])
    expect(said(repeat(200, { ...poll, durationMs: 30_000 }), watch('stale'))).toEqual([
      '3: nudge',
      '183: halt',
    ])
    expect(said(repeat(100, poll, { ...poll, name: 'sleep', content: '' }), everything)[1]).not.toMatch(
      /block|halt/,
    )
    const sends = { ...poll, name: 'send_mail' }
    expect(said(repeat(6, sends), watch('stale'))).toEqual(['3: nudge', '6 asked: block'])
    expect(said(repeat(6, { ...sends, readOnly: true }), watch('stale'))).toEqual(['3: nudge'])
  })

  test('does not count while it polls, and polling ends a row', () => {
    const poll = { name: 'poll', polling: true }
    expect(said(repeat(40, poll), everything)).toEqual([])
    expect(said([look, look, poll, look, poll, look], watch('stale'))).toEqual([])
    expect(said(repeat(3, [poll, look]), watch('stale'))).toEqual(['3: nudge'])
    expect(said(repeat(40, { ...poll, ...fails }), everything)).toEqual([])
  })

  test('counts all that ran when one response asked for too many', () => {
    const batches = repeat(
      3,
      many(50, () => look),
    )
    const { said: all, calls } = play(batches, watch('stale', 'duplicates'))
    expect(calls).toBe(8)
    expect(all).toEqual([
      '1 asked: no_progress block',
      '2 asked: no_progress block',
      '2: no_progress nudge',
      '3 asked: no_progress block',
      '3 asked: no_progress block',
    ])
  })

  test('is forgotten with what was longest not seen', () => {
    const few = {
      ...watch('recurring', 'stale', 'mixed'),
      progress: { ...off, mixed: progress.mixed, memory: 4 },
    }
    expect(said(repeat(9, ...many(4, fresh)), few)).not.toEqual([])
    expect(said(repeat(9, ...many(5, fresh)), few)).toEqual([])
  })
})

describe('different batches that bring nothing new', () => {
  test.each([2, 3, 5, 7])(
    'in a cycle of %i are nudged at four, refused from six, halted at twenty',
    (period) => {
      const { said: all, calls } = play(
        many(period + 25, (n) => fresh(n % period)),
        watch('mixed'),
      )
      expect(all[0]).toBe(`${period + 4}: no_progress nudge`)
      expect(all[1]).toBe(`${period + 7} asked: no_progress block`)
      expect(all.at(-1)).toBe(`${period + 20}: no_progress halt`)
      expect(calls).toBe(period + 6)
    },
  )

  test('may still bring something new: a batch with a call never made is not refused', () => {
    const batches = [...many(3, fresh), ...many(3, fresh), ...many(3, fresh), [fresh(0), fresh(9)], fresh(0)]
    expect(said(batches, watch('mixed'))).toEqual(['7: nudge'])
  })

  test('are nudged when they are more than half of the last twenty, and halted at four fifths', () => {
    const half = many(40, (n) => (n % 2 ? look : fresh(n)))
    expect(said(half, watch('mostly'))).toEqual([])
    const most = many(40, (n) => (n % 5 === 0 ? fresh(n) : look))
    expect(said(most, watch('mostly'))).toEqual(['15: nudge', '22: halt'])
  })
})

describe('one call beside others', () => {
  const beside = (n: number, more: Partial<Step> = {}): Step[] => [look, { ...fresh(n), ...more }]

  test('is nudged at three rounds, refused from five, and halted at seven', () => {
    const { said: all, calls } = play(
      many(9, (n) => beside(n)),
      watch('beside'),
    )
    expect(all).toEqual([
      '3: no_progress nudge',
      '6 asked: no_progress block',
      '7 asked: no_progress block',
      '7: no_progress halt',
    ])
    expect(calls).toBe(12)
  })

  test('counts for a third beside what may have changed something, unless it only reads', () => {
    const test: Step = { name: 'test', readOnly: false, ...fails }
    const edit = (n: number): Step => ({ name: 'edit', readOnly: false, args: { n }, content: `edit ${n}` })
    expect(
      said(
        many(12, (n) => [edit(n), test]),
        watch('beside'),
      ),
    ).toEqual(['7: nudge'])
    expect(
      said(
        many(4, (n) => [edit(n), look]),
        watch('beside'),
      ),
    ).toEqual(['3: nudge'])
    expect(
      said(
        many(4, (n) => [{ ...edit(n), ...fails, content: `${n}` }, test]),
        watch('beside'),
      ),
    ).toEqual(['3: nudge'])
  })

  test('is over when a batch comes without it', () => {
    const batches = [beside(1), beside(2), fresh(3), beside(4), beside(5), [fresh(6), fresh(7)], beside(8)]
    expect(said(batches, watch('beside'))).toEqual([])
  })
})

describe('the same call again, whatever comes between', () => {
  test('counts for a third after something new', () => {
    const batches = many(60, (n) => (n % 2 ? fresh(n) : look))
    expect(said(batches, watch('recurring')).slice(0, 2)).toEqual(['31: nudge', '39 asked: block'])
  })

  test('is refused and at last halted when something new is thrown in now and then', () => {
    const { said: all, calls } = play(
      many(60, (n) => (n % 5 === 4 ? fresh(n) : look)),
      watch('recurring'),
    )
    expect(all[0]).toBe('8: no_progress nudge')
    expect(all.at(-1)).toBe('18: no_progress halt')
    expect(calls).toBe(11)
  })

  test('does not count what was refused for another reason', () => {
    expect(
      said(repeat(20, look), watch('stale', 'recurring')).filter((one) => !/block|nudge/.test(one)),
    ).toEqual([])
  })
})

describe('the same call with almost the same result', () => {
  const seen = (content: string, more: Partial<Step> = {}): Step => ({ ...look, content, ...more })
  const letters = 'abcdefghijklmnopqrstuvwxyz'
  const word = (n: number) =>
    Array.from(n.toString(26).padStart(3, '0'))
      .map((digit) => letters[Number.parseInt(digit, 26)])
      .join('')

  test('is nudged at thirteen and halted at forty-one when references, repetition or the order differ', () => {
    const references = many(60, (n) => seen(`No seats. Reference k${n}x.`))
    expect(said(references, watch('similar'))).toEqual(['13: nudge', '41: halt'])
    const items = ['tea', 'milk', 'rice', 'salt']
    const orders = many(60, (n) =>
      seen([...items.slice(n % 4), ...items.slice(0, n % 4)].join(n % 3 ? ', ' : '; ')),
    )
    expect(said(orders, watch('similar'))).toEqual(['13: nudge', '41: halt'])
    const growing = many(60, (n) => seen('Tried it.\n'.repeat(n + 1)))
    expect(said(growing, watch('similar'))).toEqual(['13: nudge', '41: halt'])
  })

  test('counts for a third when numbers differ; of a tool that may change things they are news', () => {
    const counts = many(140, (n) => seen(`Look ${n}: nothing.`))
    expect(said(counts, watch('similar'))).toEqual(['37: nudge', '121: halt'])
    expect(
      said(
        many(140, (n) => seen(`Score ${n}`, { readOnly: false })),
        watch('similar'),
      ),
    ).toEqual([])
    const references = many(140, (n) => seen(`Reference k${n}x.`, { readOnly: false }))
    expect(said(references, watch('similar'))).toEqual(['37: nudge', '121: halt'])
  })

  test('begins anew with another call, and steps back when new words come', () => {
    expect(
      said(
        many(80, (n) => (n % 40 === 39 ? fresh(n) : seen(`Look k${n}x`))),
        watch('similar'),
      ),
    ).toEqual(['13: nudge', '52: nudge'])
    const words = many(120, (n) => seen(n % 10 === 9 ? `${word(n)} came` : `Look k${n}x`))
    expect(said(words, watch('similar')).at(-1)).toBe('76: halt')
    expect(
      said(
        many(200, (n) => seen(`${word(n)} came`)),
        watch('similar'),
      ),
    ).toEqual([])
  })

  test('is the same for lists in another order, and for each of several calls in turn', () => {
    const lists = many(60, (n) => ({
      ...look,
      args: { tags: n % 2 ? ['a', 'b'] : ['b', 'a'] },
      content: `k${n}x`,
    }))
    expect(said(lists, watch('similar'))).toEqual(['13: nudge', '41: halt'])
    const turns = many(60, (n) => ({ ...look, args: { at: n % 3 }, content: `Nothing, k${n}x` }))
    expect(said(turns, watch('similar'))).toEqual(['15: nudge', '43: halt'])
  })

  test('forgives what waits: a percentage may take its time', () => {
    expect(
      said(
        many(200, (n) => seen(`running, k${n}x`)),
        watch('similar'),
      ),
    ).toEqual(['121: nudge'])
  })
})

describe('a round that is longer than what is remembered', () => {
  const places = (count: number, steps: number) => many(steps, (n) => fresh(n % count))

  test.each([66, 70, 100, 150])(
    'of %i is nudged about when it has been repeated, and halted after another',
    (count) => {
      const all = said(places(count, count * 4), watch('tour'))
      expect(all.map((one) => one.split(': ')[1])).toEqual(['nudge', 'halt'])
      const [nudge, halt] = all.map((one) => Number(one.split(':')[0]))
      expect(Math.abs((nudge ?? 0) - count * 2)).toBeLessThan(count / 2)
      expect(Math.abs((halt ?? 0) - count * 3)).toBeLessThan(count / 2)
    },
  )

  test('leads to no halt when it is made once more, and to nothing when something new comes between', () => {
    expect(said(places(100, 250), watch('tour')).filter((one) => !one.endsWith('nudge'))).toEqual([])
    const news = many(600, (n) => (n % 5 === 4 ? fresh(n + 1000) : fresh(n % 100)))
    expect(said(news, watch('tour'))).toEqual([])
  })
})

describe('looking at changes', () => {
  const edit = (n: number): Step => ({ name: 'edit', readOnly: false, args: { n }, content: 'Edited.' })
  const check: Step = { name: 'test', readOnly: false, ...fails }

  test('with one test leads to no more than a nudge, however often it fails', () => {
    const cycles = many(100, (n) => [edit(n), check]).flat()
    expect(said(cycles, everything).filter((one) => !one.endsWith('nudge'))).toEqual([])
    expect(said(cycles, watch('recurring'))).toEqual(['32: nudge'])
    expect(said(cycles, watch('failingTool'))).toEqual(['16: nudge'])
  })

  test('counts for a third in a row, so that several checks may follow each change', () => {
    const checks = many(6, (n) => ({ ...check, args: { check: n } }))
    const cycles = many(20, (n) => [edit(n), ...checks]).flat()
    expect(said(cycles, watch('stale', 'mixed', 'mostly'))).toEqual([])
  })

  test('is none when nothing new was changed, or when the change failed', () => {
    const reads = many(100, (n) => [fresh(n), check]).flat()
    expect(said(reads, watch('recurring')).some((one) => one.endsWith('block'))).toBe(true)
    const failed = many(100, (n) => [{ ...edit(n), ...fails, content: `no ${n}` }, check]).flat()
    expect(said(failed, watch('recurring')).some((one) => one.endsWith('block'))).toBe(true)
  })
})

describe('the same output, whatever the arguments', () => {
  const search = (n: number, more: Partial<Step> = {}): Step => ({
    name: 'search',
    args: { n },
    content: '[]',
    ...more,
  })

  test('is told apart by its length, and by what its tool may do', () => {
    const long = many(99, (n) => search(n, { content: 'x'.repeat(500) }))
    expect(said(long, watch('sameOutput'))).toEqual(['5: nudge', '30: halt'])
    expect(
      said(
        many(99, (n) => search(n)),
        watch('sameOutput'),
      ),
    ).toEqual(['6: nudge'])
    const writes = many(99, (n) => search(n, { readOnly: false }))
    expect(said(writes, watch('sameOutput'))).toEqual(['13: nudge'])
  })

  test('halts where the configuration says so', () => {
    const sameOutput = progress.sameOutput && {
      ...progress.sameOutput,
      short: { nudgeAt: 6, haltAt: 16 },
      shortWrites: { nudgeAt: 12, haltAt: 25 },
    }
    const strict = { ...only(), progress: { ...off, sameOutput } }
    expect(
      said(
        many(20, (n) => search(n)),
        strict,
      ),
    ).toEqual(['6: nudge', '16: halt'])
    const writes = many(30, (n) => search(n, { readOnly: false }))
    expect(said(writes, strict)).toEqual(['13: nudge', '26: halt'])
  })

  test('when it is long leads to no more than a nudge from a tool that may change things, or for other words', () => {
    const content = 'x'.repeat(500)
    const writes = many(99, (n) => search(n, { content, readOnly: false }))
    expect(said(writes, watch('sameOutput'))).toEqual(['5: nudge'])
    const words = many(99, (n) => search(n, { content, args: { at: 'abcdefg'[n % 7]?.repeat(n + 1) } }))
    expect(said(words, watch('sameOutput'))).toEqual(['5: nudge'])
  })

  test('counts for a third from a tool that may change things, when more than numbers differ', () => {
    const write = (n: number) => ({
      name: 'write',
      readOnly: false,
      args: { text: 'abcdefg'[n % 7]?.repeat(n + 1) },
      content: 'ok',
    })
    expect(said(many(70, write), watch('sameOutput'))).toEqual(['34: nudge'])
    const long = (n: number) => ({ ...write(n), args: { text: 'x'.repeat(300), n } })
    expect(said(many(30, long), watch('sameOutput'))).toEqual([])
  })

  test('is none when another comes between, when nothing else was asked, or from another tool', () => {
    const batches = many(20, (n) => search(n, n % 5 === 4 ? { content: `${n}` } : {}))
    expect(said(batches, watch('sameOutput'))).toEqual([])
    expect(said(repeat(20, search(1)), watch('sameOutput'))).toEqual([])
    expect(
      said(
        many(12, (n) => search(n, { name: `search${n % 4}` })),
        watch('sameOutput'),
      ),
    ).toEqual([])
  })

  test('of one batch counts once', () => {
    expect(said([many(13, (n) => search(n)), search(14)], watch('sameOutput'))).toEqual([])
  })
})

describe('failures', () => {
  const failing = (n: number, more: Partial<Step> = {}): Step => ({
    name: 'run',
    args: { n },
    ...fails,
    content: `error ${n}`,
    ...more,
  })

  test('of whole batches are nudged at seven and halted at eleven', () => {
    expect(
      said(
        many(12, (n) => failing(n)),
        watch('failing'),
      ),
    ).toEqual(['7: nudge', '11: halt'])
    expect(
      said(
        many(20, (n) => [failing(n), look]),
        watch('failing'),
      ),
    ).toEqual([])
    expect(
      said(
        many(20, (n) => failing(n, n === 6 ? { ok: true, errorKind: null } : {})),
        watch('failing'),
      ),
    ).toEqual(['14: nudge', '18: halt'])
  })

  test('of one tool count whatever other tools do, until it succeeds', () => {
    const batches = many(20, (n) => [failing(n), look])
    expect(said(batches, watch('failingTool'))).toEqual(['8: nudge', '20: halt'])
    const recovers = many(20, (n) => failing(n, n % 7 === 6 ? { ok: true, errorKind: null } : {}))
    expect(said(recovers, watch('failingTool'))).toEqual([])
  })

  test('with one error for other arguments are nudged at five and halted at eight', () => {
    const same = many(9, (n) => failing(n, { content: 'python: not found' }))
    expect(said(same, watch('sameError'))).toEqual(['5: nudge', '8: halt'])
    expect(said(repeat(9, failing(1)), watch('sameError'))).toEqual([])
    const others = many(9, (n) => failing(n, { content: n === 4 ? 'other' : 'python: not found' }))
    expect(said(others, watch('sameError'))).toEqual([])
  })

  test('in passing count until something succeeds', () => {
    const batches = many(11, (n) => failing(n, timesOut))
    expect(said(batches, watch('transient', 'failing', 'failingTool', 'sameError'))).toEqual([
      '6: nudge',
      '10: halt',
    ])
    const once = many(11, (n) => (n === 5 ? look : failing(n, timesOut)))
    expect(said(once, watch('transient'))).toEqual([])
    const lasting = many(11, (n) => failing(n, n === 5 ? {} : timesOut))
    expect(said(lasting, watch('transient'))).toEqual(['7: nudge', '11: halt'])
  })

  test('by tools that do not exist count whatever their names', () => {
    const batches = many(7, (n) => ({ name: `tool${n}`, ...isUnknown }))
    expect(said(batches, watch('unknownTools'))).toEqual(['2: nudge', '6: halt'])
    expect(
      said(
        many(9, (n) => (n % 2 ? look : { name: `tool${n}`, ...isUnknown })),
        watch('unknownTools'),
      ),
    ).toEqual([])
  })
})

describe('errors that are answers', () => {
  const check = (n: number, content: string): Step => ({
    name: 'check',
    readOnly: false,
    args: { url: `https://example.com/${'abcdefg'[n % 7]}${n}` },
    ...fails,
    content,
  })

  test.each([
    ['HTTP 404 Not Found'],
    ['404'],
    ['Request failed with status code 410'],
    ['Error: not found'],
    ['No such page.'],
    ['The page does not exist.'],
  ])('count for a sixteenth: %s', (content) => {
    const all = many(140, (n) => check(n, content))
    expect(said(all, everything)).toEqual(['65: nudge', '112: nudge', '113: halt'])
  })

  test('count for a third where each names what it was asked for', () => {
    const all = many(60, (n) => ({
      ...check(n, `No such word: word${'abcdefg'[n % 7]}`),
      args: { word: `word${'abcdefg'[n % 7]}`, n },
    }))
    expect(said(all, watch('failing'))).toEqual(['21: nudge', '33: halt'])
  })

  test.each([
    ['sh: python: not found', { cmd: 'python a.py' }],
    ['python: command not found', { cmd: 'python a.py' }],
    ["Table 'students' doesn't exist", { sql: 'select name from students' }],
    ['Line 404: unexpected end', { cmd: 'make' }],
  ])('are none when they name what each call has: %s', (content, args) => {
    const all = many(20, (n) => ({ name: 'run', readOnly: false, args: { ...args, n }, ...fails, content }))
    expect(said(all, watch('sameError'))).toEqual(['5: nudge', '8: halt'])
  })
})

describe('refusals', () => {
  test('of everything, whoever refuses, are nudged at three and halted at eight', () => {
    const batches = many(9, (n) => ({ name: 'pay', args: { n }, ...(n % 2 ? isDenied : byPerson) }))
    expect(said(batches, watch('refused'))).toEqual(['3: nudge', '8: halt'])
    expect(
      said(
        many(20, (n) => [{ name: 'pay', args: { n }, ...byPerson }, fresh(n)]),
        watch('refused'),
      ),
    ).toEqual([])
    expect(
      said(
        many(20, (n) => (n % 3 === 2 ? fresh(n) : { name: 'pay', args: { n }, ...byPerson })),
        watch('refused'),
      ),
    ).toEqual([])
  })

  test('of its own do not count as others’', () => {
    expect(said(repeat(20, look), watch('stale', 'refused')).filter((one) => !/block/.test(one))).toEqual([
      '3: nudge',
    ])
  })

  test('of calls that were closed as the run stopped count nowhere', () => {
    expect(said(repeat(20, { name: 'pay', ...isRefused }), everything)).toEqual([])
  })

  test('by policy halt the same call at the second, in ERROR, however often others succeed', () => {
    const denied = { name: 'write', ...isDenied }
    const { said: all, messages } = play([denied, fresh(1), fresh(2), denied], watch('policyDenied'))
    expect(all).toEqual(['1: policy_denied nudge', '4: policy_denied halt'])
    expect(messages[1]).toMatch(
      /asked twice for write, which is denied by policy.*progress\.policyDenied\.haltAt \(now 2\)/,
    )
    expect(
      said(
        many(9, (n) => ({ ...denied, args: { n } })),
        watch('policyDenied'),
      ).some((one) => /halt/.test(one)),
    ).toBe(false)
  })
})

describe('what is said', () => {
  test('names the calls, the setting and what to do, and no secret', () => {
    const secret = { ...look, args: { password: 'hunter2-hunter2' } }
    const { messages, evidence } = play(repeat(21, secret), watch('stale'))
    expect(evidence.join()).not.toContain('hunter2')
    expect(messages[0]).toBe(
      'You have called look with the same arguments 3 times in a row, and nothing new came back. ' +
        'Use what you have, change the arguments, or try another way.',
    )
    expect(messages[1]).toMatch(
      /^Not executed\. You have called look .* 5 times .* After 16 more like this the run stops\.$/,
    )
    expect(messages.at(-1)).toMatch(
      /raise guardrails\.progress\.stale\.haltAt \(now 20\); a tool that waits .* polling\.$/,
    )
  })

  test('is never said twice in a row', () => {
    const batches = many(6, (n) => [look, look, look, fresh(n)]).flat()
    const { messages } = play(batches, watch('stale'))
    expect(messages).toHaveLength(6)
    expect(messages.some((message, i) => message === messages[i - 1])).toBe(false)
  })

  test('one thing is said at a time: a halt before a nudge, and the cause before the symptom', () => {
    const both = { ...everything, progress: { ...progress, failing: { nudgeAt: 1, haltAt: 3 } } }
    expect(said(repeat(3, { ...look, ...fails }), both)).toEqual(['1: nudge', '3: halt'])
    expect(play(repeat(3, { name: 'fly', ...isUnknown }), everything).messages[0]).toMatch(/do not exist/)
  })
})
