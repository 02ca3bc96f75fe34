import type { ProgressConfig } from '../../guards/progress-config.js'
import type { GuardrailsConfig } from '../../guards/roster.js'
import { defaultConfig } from '../../src/core/config/resolve-config.js'
import { noDetectors } from '../../src/testing/agent/agent-inputs.js'
import { fails, isDenied, isRefused, isUnknown, only, play, repeat, type Step, timesOut } from './facts.js'

const { progress } = defaultConfig.guardrails
if (progress === null) throw new Error('The default policy is on.')

const off: ProgressConfig = { ...progress, ...noDetectors }

/** One or more detectors. */
function watch(...rules: (keyof ProgressConfig)[]): GuardrailsConfig {
  return {
    ...only(),
    progress: { ...off, ...Object.fromEntries(rules.map((rule) => [rule, progress?.[rule]])) },
  }
}
const everything: GuardrailsConfig = { ...only(), progress }

const decisions = (batches: Parameters<typeof play>[0], config: GuardrailsConfig) =>
  play(batches, config).decisions.map((one) => one.replace(' no_progress', ''))
const many = <Item>(count: number, item: (n: number) => Item): Item[] =>
  Array.from({ length: count }, (_, n) => item(n))
const look: Step = { name: 'look' }
const fresh = (n: number): Step => ({ name: 'read', args: { n }, content: `page ${n}` })
const byPerson = { ...isRefused, refusedBy: 'other' as const }

describe('one repeated batch', () => {
  test('is nudged at the third, refused from the sixth, and halted at the twenty-first', () => {
    const { decisions: all, calls } = play(repeat(40, look), watch('stale'))
    expect(calls).toBe(5)
    expect(all[0]).toBe('3: no_progress nudge')
    expect(all[1]).toBe('6 asked: no_progress block')
    expect(all.at(-1)).toBe('21: no_progress halt')
  })

  test('is the same in any order of its calls, and with other whitespace', () => {
    const [a, b] = [
      { ...look, args: { at: 'a' } },
      { ...look, args: { at: 'b\nc' } },
    ]
    const spaced = { ...look, args: { at: ' b  \nc ' } }
    expect(
      decisions(
        [
          [a, b],
          [b, a],
          [spaced, a],
        ],
        watch('stale'),
      ),
    ).toEqual(['3: nudge'])
  })

  test('ends with a new call or a new result', () => {
    for (const news of [fresh(1), { ...look, content: 'other' }, { ...look, ...fails }]) {
      expect(decisions([look, look, news, look, look], watch('stale'))).toEqual(['5: nudge'])
    }
    expect(decisions([...repeat(5, look), fresh(1), look], watch('stale'))).toEqual(['3: nudge', '7: nudge'])
  })

  test('also counts if it fails, but not if it fails transiently', () => {
    expect(decisions(repeat(3, { ...look, ...fails }), watch('stale'))).toEqual(['3: nudge'])
    expect(decisions(repeat(30, { ...look, ...timesOut }), watch('stale', 'mixed'))).toEqual([])
  })

  test('counts double if it is refused, because three requests are enough', () => {
    const batches = repeat(4, { name: 'pay', ...byPerson })
    expect(decisions(batches, watch('stale'))).toEqual(['2: nudge', '4 asked: block'])
  })

  test('counts a third if it waits, and is then never refused', () => {
    const wait = { name: 'read_line', durationMs: 3000, content: 'no input' }
    expect(decisions(repeat(61, wait), watch('stale'))).toEqual(['7: nudge', '16: nudge', '61: halt'])
    expect(decisions(repeat(3, { ...wait, durationMs: 2999 }), watch('stale'))).toEqual(['3: nudge'])
    expect(decisions(repeat(3, { ...wait, content: 'x'.repeat(301) }), watch('stale'))).toEqual(['3: nudge'])
    expect(decisions(repeat(3, { ...wait, ...fails }), watch('stale'))).toEqual(['3: nudge'])
    const never = { ...watch('stale'), progress: { ...off, stale: progress.stale, waiting: null } }
    expect(decisions(repeat(3, wait), never)).toEqual(['3: nudge'])
  })

  test('counts a thirtieth if it took half a minute, with any result', () => {
    const wait = { name: 'read_line', durationMs: 30_000, content: 'x'.repeat(2000) }
    expect(decisions(repeat(602, wait), watch('stale'))).toEqual(['61: nudge', '151: nudge', '601: halt'])
    expect(decisions(repeat(7, { ...wait, durationMs: 29_999 }), watch('stale'))).toEqual([
      '3: nudge',
      '6 asked: block',
      '7 asked: block',
    ])
  })

  test('that reports ongoing work is nudged immediately, halted late, and never refused', () => {
    const poll = { name: 'status', readOnly: false, content: 'queued' }
    expect(decisions(repeat(200, poll), watch('stale'))).toEqual(['3: nudge', '51: nudge', '183: halt'])
    expect(decisions(repeat(200, { ...poll, durationMs: 30_000 }), watch('stale'))).toEqual([
      '3: nudge',
      '151: nudge',
    ])
    expect(decisions(repeat(100, poll, { ...poll, name: 'sleep', content: '' }), everything)[1]).not.toMatch(
      /block|halt/,
    )
    const sends = { ...poll, name: 'send_mail' }
    expect(decisions(repeat(6, sends), watch('stale'))).toEqual(['3: nudge', '6 asked: block'])
    expect(decisions(repeat(6, { ...sends, readOnly: true }), watch('stale'))).toEqual(['3: nudge'])
  })

  test.each([
    'CREATE_IN_PROGRESS',
    '{"status": "PROVISIONING"}',
    'Creating',
    'Initializing the volume',
    'pod is ContainerCreating: pulling image',
    'scheduled',
    'Awaiting review',
    '{"done": false}',
    '{"id": 7, "finished":false}',
    '{"is_ready": false}',
    'No new messages.',
    'No reply yet.',
  ])('waits if its result is %j', (content) => {
    expect(
      decisions(repeat(60, { name: 'check', content }), watch('stale')).filter(
        (one) => !one.endsWith('nudge'),
      ),
    ).toEqual([])
  })

  test.each(['{"done": true}', 'Recreating is not possible', 'pulls: 3', 'schedules'])(
    'does not wait if its result is %j',
    (content) => {
      expect(decisions(repeat(6, { name: 'check', content }), watch('stale'))).toContain('6 asked: block')
    },
  )

  test('does not count while it polls, and polling ends a streak', () => {
    const poll = { name: 'poll', polling: true }
    expect(decisions(repeat(40, poll), everything)).toEqual([])
    expect(decisions([look, look, poll, look, poll, look], watch('stale'))).toEqual([])
    expect(decisions(repeat(3, [poll, look]), watch('stale'))).toEqual(['3: nudge'])
    expect(decisions(repeat(40, { ...poll, ...fails }), everything)).toEqual([])
  })

  test('counts all executed calls if one response requested too many', () => {
    const batches = repeat(
      3,
      many(50, () => look),
    )
    const { decisions: all, calls } = play(batches, watch('stale'))
    expect(calls).toBe(8)
    expect(all).toEqual([
      '1 asked: no_progress block',
      '2 asked: no_progress block',
      '2: no_progress nudge',
      '3 asked: no_progress block',
      '3 asked: no_progress block',
    ])
  })

  test('is forgotten if it is the least recently seen', () => {
    const few = { ...only(), progress: { ...off, mixed: progress.mixed, memory: 4 } }
    expect(decisions(repeat(9, ...many(4, fresh)), few)).not.toEqual([])
    expect(decisions(repeat(9, ...many(5, fresh)), few)).toEqual([])
  })

  test('is refused within one response beyond the permitted number', () => {
    const batch = (count: number) => many(count, () => look)
    expect(play([batch(4)], watch('stale')).calls).toBe(4)
    const { calls, messages } = play([[...batch(50), fresh(1)]], watch('stale'))
    expect(calls).toBe(5)
    expect(messages[0]).toMatch(/same call to look 50 times, and only the first 4 were executed/)
    expect(play([batch(50)], watch('mixed')).calls).toBe(50)
  })
})

describe('different batches without new results', () => {
  test.each([2, 3, 5, 7])(
    'in a cycle of %i are nudged at four, refused from six, halted at twenty',
    (period) => {
      const { decisions: all, calls } = play(
        many(period + 25, (n) => fresh(n % period)),
        watch('mixed'),
      )
      expect(all[0]).toBe(`${period + 4}: no_progress nudge`)
      expect(all[1]).toBe(`${period + 7} asked: no_progress block`)
      expect(all.at(-1)).toBe(`${period + 20}: no_progress halt`)
      expect(calls).toBe(period + 6)
    },
  )

  test('may still bring new results, so a batch with a new call is not refused', () => {
    const batches = [...many(3, fresh), ...many(3, fresh), ...many(3, fresh), [fresh(0), fresh(9)], fresh(0)]
    expect(decisions(batches, watch('mixed'))).toEqual(['7: nudge'])
  })
})

describe('one call that recurs', () => {
  const clean = { ...look, content: 'clean' }

  test('is nudged at the sixth time, with any calls in between, and neither refused nor halted', () => {
    const between = many(120, (n) => (n % 2 ? fresh(n) : clean))
    expect(decisions(between, everything)).toEqual(['11: nudge'])
    const next = many(120, (n) => [look, fresh(n)])
    expect(decisions(next, everything)).toEqual(['6: nudge'])
  })

  test.each([true, false])('is nudged if its result differs only in digits (readOnly %j)', (readOnly) => {
    const counted = many(200, (n) => ({ ...look, readOnly, content: `attempt ${n} of 200 at 1${n}.5 %` }))
    expect(decisions(counted, everything)).toEqual(['6: nudge'])
    expect(play(counted, everything).messages[0]).toMatch(
      /nothing but numbers in its result changed.*polling: true/,
    )
    const words = many(200, (n) => ({
      ...look,
      readOnly,
      content: `attempt ${'abcdefg'[n % 7]?.repeat(n + 1)}`,
    }))
    expect(decisions(words, everything)).toEqual([])
  })

  test('is not refused if its latest result was new', () => {
    const batches = many(60, (n) =>
      n % 2 ? fresh(n) : { ...clean, content: n < 38 ? 'clean' : `changed ${n}` },
    )
    const { calls, decisions: all } = play(batches, everything)
    expect(calls).toBe(60)
    expect(all.filter((one) => !one.endsWith('nudge'))).toEqual([])
  })

  test('is disabled with stale', () => {
    const batches = many(120, (n) => (n % 2 ? fresh(n) : clean))
    expect(decisions(batches, { ...only(), progress: { ...progress, stale: null } })).toEqual([])
  })
})

describe('dates and prices', () => {
  test.each([
    ['days', (n: number) => new Date(Date.UTC(2026, 0, n + 1)).toISOString().slice(0, 10)],
    [
      'days in a sentence',
      (n: number) => `The next delivery is on ${new Date(Date.UTC(2026, 0, n + 1)).toDateString()}.`,
    ],
    ['times', (n: number) => new Date(Date.UTC(2026, 0, 1, 9, n * 15)).toISOString()],
    ['prices', (n: number) => `$${n}.5m`],
    ['epochs', (n: number) => `due ${1_770_000_000 + n * 86_400}`],
  ])('count as answers: %s', (_, content) => {
    const batches = many(60, (n) => ({ ...look, readOnly: false, content: content(n) }))
    expect(decisions(batches, everything).filter((one) => !one.endsWith('nudge'))).toEqual([])
  })
})

describe('checking changes', () => {
  const edit = (n: number): Step => ({ name: 'edit', readOnly: false, args: { n }, content: 'Edited.' })
  const check: Step = { name: 'test', readOnly: false, ...fails }

  test('with one test only leads to a nudge, however often it fails', () => {
    const cycles = many(100, (n) => [edit(n), check]).flat()
    expect(decisions(cycles, everything)).toEqual(['32: nudge'])
    const others = many(100, (n) => [edit(n), { ...check, args: { n } }]).flat()
    expect(decisions(others, watch('sameError'))).toEqual(['10: nudge'])
  })

  test('counts a third in a row, so that several checks may follow each change', () => {
    const checks = many(6, (n) => ({ ...check, args: { check: n } }))
    const cycles = many(20, (n) => [edit(n), ...checks]).flat()
    expect(decisions(cycles, watch('mixed'))).toEqual([])
  })

  test('does not apply if nothing new was changed, or if the change failed', () => {
    const reads = many(12, (n) => [fresh(n), check]).flat()
    expect(decisions(reads, watch('stale'))).toEqual(['12: nudge'])
    const failed = many(12, (n) => [{ ...edit(n), ...fails, content: `no ${n}` }, check]).flat()
    expect(decisions(failed, watch('stale'))).toEqual(['12: nudge'])
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
    const two = (n: number) => failing(n, { content: n % 2 ? 'one error' : 'another error' })
    expect(decisions(many(12, two), watch('failing'))).toEqual(['7: nudge', '11: halt'])
    expect(
      decisions(
        many(20, (n) => [two(n), look]),
        watch('failing'),
      ),
    ).toEqual([])
    const recovers = many(20, (n) => (n === 6 ? { ...two(n), ok: true, errorKind: null } : two(n)))
    expect(decisions(recovers, watch('failing'))).toEqual(['14: nudge', '18: halt'])
  })

  test('of other calls with different errors are halted after thirty, because the first rows of an import may be bad', () => {
    expect(
      decisions(
        many(40, (n) => failing(n)),
        watch('failing'),
      ),
    ).toEqual(['7: nudge', '31: halt'])
    expect(
      decisions(
        many(100, (n) => failing(n, n < 30 ? {} : { ok: true, errorKind: null })),
        everything,
      ),
    ).toEqual(['7: nudge'])
  })

  test('with one error for other arguments are nudged at five and halted at eight', () => {
    const same = many(9, (n) => failing(n, { content: 'python: not found' }))
    expect(decisions(same, watch('sameError'))).toEqual(['5: nudge', '8: halt'])
    expect(decisions(repeat(9, failing(1)), watch('sameError'))).toEqual([])
    const others = many(9, (n) => failing(n, { content: n === 4 ? 'other' : 'python: not found' }))
    expect(decisions(others, watch('sameError'))).toEqual([])
  })

  test('that are transient count until a success', () => {
    const batches = many(11, (n) => failing(n, timesOut))
    expect(decisions(batches, watch('transient', 'failing', 'sameError', 'stale', 'mixed'))).toEqual([
      '6: nudge',
      '10: halt',
    ])
    const once = many(11, (n) => (n === 5 ? look : failing(n, timesOut)))
    expect(decisions(once, watch('transient'))).toEqual([])
    const lasting = many(11, (n) => failing(n, n === 5 ? {} : timesOut))
    expect(decisions(lasting, watch('transient'))).toEqual(['7: nudge', '11: halt'])
  })

  test.each([
    'Error 429: Too Many Requests',
    'HTTP 503',
    'rate limit exceeded',
    'Rate limited. Retry after 20 s.',
    '503',
    'timeout of 5000ms exceeded',
    'Timeout 30000ms exceeded.',
    'ECONNRESET',
    '{"error": {"code": 429, "message": "slow down"}}',
  ])('that are transient are recognized by their message, and never refused: %j', (content) => {
    const once = { ...look, content }
    for (const step of [{ ...once, ...fails, content }, once]) {
      expect(decisions(repeat(11, step), everything)).toEqual(['6: nudge', '10: halt'])
      expect(decisions([...repeat(9, step), look], everything)).toEqual(['6: nudge'])
    }
  })

  test.each([
    'The rate limit of this plan is 429 requests.',
    'Room 429 is taken',
    'timeout = 5000',
    '503 files were read',
  ])('are not inferred from an answer: %j', (content) => {
    expect(decisions(repeat(6, { ...look, content }), watch('stale'))).toEqual(['3: nudge', '6 asked: block'])
  })

  test('of a shell are one error, on any line', () => {
    const shell = (n: number) => failing(n, { content: `/bin/bash: line ${n}: jq: command not found` })
    expect(decisions(many(9, shell), watch('sameError'))).toEqual(['5: nudge', '8: halt'])
  })

  test('of tools that do not exist count with any names', () => {
    const batches = many(7, (n) => ({ name: `tool${n}`, ...isUnknown }))
    expect(decisions(batches, watch('unknownTools'))).toEqual(['2: nudge', '6: halt'])
    expect(
      decisions(
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
  ])('count a sixteenth: %s', (content) => {
    const all = many(140, (n) => check(n, content))
    expect(decisions(all, watch('sameError', 'failing'))).toEqual(['65: nudge', '112: nudge', '113: halt'])
  })

  test('count a third if each names its arguments', () => {
    const all = many(60, (n) => ({
      ...check(n, `No such word: word${'abcdefg'[n % 7]}`),
      args: { word: `word${'abcdefg'[n % 7]}`, n },
    }))
    expect(decisions(all, watch('failing'))).toEqual(['21: nudge', '33: halt'])
  })

  test.each([
    ['sh: python: not found', { cmd: 'python a.py' }],
    ['python: command not found', { cmd: 'python a.py' }],
    ["Table 'students' doesn't exist", { sql: 'select name from students' }],
    ['Line 404: unexpected end', { cmd: 'make' }],
  ])('do not count if they name the value that every call shares: %s', (content, args) => {
    const all = many(20, (n) => ({ name: 'run', readOnly: false, args: { ...args, n }, ...fails, content }))
    expect(decisions(all, watch('sameError'))).toEqual(['5: nudge', '8: halt'])
  })
})

describe('refusals', () => {
  test('of everything, by anyone, are nudged at three and halted at eight', () => {
    const batches = many(9, (n) => ({ name: 'pay', args: { n }, ...(n % 2 ? isDenied : byPerson) }))
    expect(decisions(batches, watch('refused'))).toEqual(['3: nudge', '8: halt'])
    expect(
      decisions(
        many(20, (n) => [{ name: 'pay', args: { n }, ...byPerson }, fresh(n)]),
        watch('refused'),
      ),
    ).toEqual([])
    expect(
      decisions(
        many(20, (n) => (n % 3 === 2 ? fresh(n) : { name: 'pay', args: { n }, ...byPerson })),
        watch('refused'),
      ),
    ).toEqual([])
  })

  test('by this guard do not count as those of others', () => {
    expect(
      decisions(repeat(20, look), watch('stale', 'refused')).filter((one) => !/block/.test(one)),
    ).toEqual(['3: nudge'])
  })

  test('of calls that were closed when the run stopped do not count', () => {
    expect(decisions(repeat(20, { name: 'pay', ...isRefused }), everything)).toEqual([])
  })

  test('by policy halt at the second identical call, in ERROR, however often others succeed', () => {
    const denied = { name: 'write', ...isDenied }
    const { decisions: all, messages } = play([denied, fresh(1), fresh(2), denied], watch('policyDenied'))
    expect(all).toEqual(['1: policy_denied nudge', '4: policy_denied halt'])
    expect(messages[1]).toMatch(
      /called write twice, which is denied by policy.*progress\.policyDenied\.haltAt \(now 2\)/,
    )
    expect(
      decisions(
        many(9, (n) => ({ ...denied, args: { n } })),
        watch('policyDenied'),
      ).some((one) => /halt/.test(one)),
    ).toBe(false)
  })
})

describe('the message of the guard', () => {
  test('names the calls, the setting and the remedy, and no secret', () => {
    const secret = { ...look, args: { password: 'hunter2-hunter2' } }
    const { messages, evidence } = play(repeat(21, secret), watch('stale'))
    expect(evidence.join()).not.toContain('hunter2')
    expect(messages[0]).toBe(
      'You have called look with the same arguments 3 times in a row, and got nothing new. ' +
        'Use what you have, change the arguments, or try another way. ' +
        '(For the developer: mark a tool that waits for something with polling: true.)',
    )
    expect(messages[1]).toMatch(
      /^Not executed\. You have called look .* 5 times .* The run stops after at most 16 more like this\.$/,
    )
    expect(messages.at(-1)).toMatch(
      /raise guardrails\.progress\.stale\.haltAt \(now 20\); mark a tool that waits .* polling: true\.$/,
    )
  })

  test('is never repeated in a row', () => {
    const batches = many(6, (n) => [look, look, look, fresh(n)]).flat()
    const { messages } = play(batches, watch('stale'))
    expect(messages).toHaveLength(7)
    expect(messages.some((message, i) => message === messages[i - 1])).toBe(false)
  })

  test('covers one finding: a halt before a nudge, and the cause before the symptom', () => {
    const both = { ...everything, progress: { ...progress, failing: { nudgeAt: 1, haltAt: 3 } } }
    expect(decisions(repeat(3, { ...look, ...fails }), both)).toEqual(['1: nudge', '3: halt'])
    expect(play(repeat(3, { name: 'fly', ...isUnknown }), everything).messages[0]).toMatch(/do not exist/)
  })
})
