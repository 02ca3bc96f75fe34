import type { ProgressConfig } from '../../guards/progress-config.js'
import type { GuardrailsConfig } from '../../guards/roster.js'
import { defaultConfig } from '../../src/core/config/schema.js'
import { noDetectors } from '../../src/testing/agent/quiet.js'
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

describe('the same output, whatever the arguments', () => {
  const search = (n: number, more: Partial<Step> = {}): Step => ({
    name: 'search',
    args: { n },
    content: '[]',
    ...more,
  })

  test('is told apart by its length, and by what its tool may do', () => {
    const long = many(12, (n) => search(n, { content: 'x'.repeat(500) }))
    expect(said(long, watch('sameOutput'))).toEqual(['5: nudge', '10: halt'])
    expect(
      said(
        many(20, (n) => search(n)),
        watch('sameOutput'),
      ),
    ).toEqual(['6: nudge', '16: halt'])
    const writes = many(30, (n) => search(n, { readOnly: false }))
    expect(said(writes, watch('sameOutput'))).toEqual(['13: nudge', '26: halt'])
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
