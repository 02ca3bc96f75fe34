import * as fc from 'fast-check'
import { SimulatedClock } from 'xstate'
import {
  defineShield,
  runShields,
  type RunShieldsOptions,
  type Shield,
  type ShieldOutcome,
  type ShieldContext,
  type ShieldVerdict,
} from '../../../src/core/shields/index.js'

const never = new AbortController().signal

function run(
  shields: Shield[],
  content = 'text',
  options: Partial<RunShieldsOptions> = {},
): Promise<ShieldOutcome> {
  return runShields(shields, content, {
    point: 'input',
    signal: never,
    clock: new SimulatedClock(),
    ...options,
  })
}

/** A shield with a fixed verdict. */
function says(name: string, verdict: unknown): Shield {
  return defineShield({ name, check: () => verdict as ShieldVerdict })
}

function replaces(name: string, from: string, to: string): Shield {
  return defineShield({
    name,
    check: (content) =>
      content.includes(from)
        ? { action: 'redact', content: content.replaceAll(from, to), message: `no ${from}` }
        : { action: 'allow' },
  })
}

describe('the combined verdict of shields', () => {
  it('is allow without shields', async () => {
    expect(await run([])).toEqual({ action: 'allow', message: null, content: 'text', findings: [] })
  })

  it.each([
    ['allow', ['allow', 'allow']],
    ['warn', ['allow', 'warn']],
    ['redact', ['redact', 'warn']],
    ['block', ['allow', 'redact', 'block', 'warn']],
  ])('is %s if they return %j', async (action, actions) => {
    const shields = actions.map((one, i) =>
      says(`s${i}`, { action: one, content: 'other', message: `says ${one}` }),
    )
    const outcome = await run(shields)
    expect(outcome.action).toBe(action)
    expect(outcome.message).toMatch(new RegExp(`^says ${action}`))
    expect(outcome.findings.map((finding) => finding.action)).toEqual(actions)
  })

  it('names every shield in list order, regardless of when they answer', async () => {
    const slow = defineShield({
      name: 'slow',
      check: async () => {
        for (let i = 0; i < 10; i += 1) await Promise.resolve()
        return { action: 'warn', message: 'late' }
      },
    })
    expect((await run([slow, says('fast', { action: 'allow' })])).findings).toEqual([
      { shield: 'slow', action: 'warn', message: 'late', durationMs: 0 },
      { shield: 'fast', action: 'allow', message: null, durationMs: 0 },
    ])
  })

  it('gives a block without a message a default one', async () => {
    const { message } = await run([says('strict', { action: 'block' })])
    expect(message).toBe("Shield 'strict' blocked the content.")
  })

  it('is plain JSON', async () => {
    const outcome = await run([says('a', { action: 'redact', content: 'x' }), says('b', 7)])
    expect(JSON.parse(JSON.stringify(outcome))).toEqual(outcome)
  })

  it('is based on the point and the context that each shield receives', async () => {
    let received: ShieldContext | undefined
    const curious = defineShield({
      name: 'curious',
      check: (_, question) => {
        received = question
        return { action: 'allow' }
      },
    })
    const context = { user: 7 }
    const messages = [{ role: 'user' as const, content: 'hi', id: 'm1', createdAt: 1 }]
    await run([curious], 'x', { point: 'toolInput', callId: 'c1', toolName: 'read', context, messages })
    const { signal, ...scene } = received ?? { signal: undefined }
    expect(scene).toEqual({ point: 'toolInput', callId: 'c1', toolName: 'read', context, messages })
    expect(signal).toBeInstanceOf(AbortSignal)
  })

  it('measures each check by the clock', async () => {
    const clock = new SimulatedClock()
    const slow = defineShield({
      name: 'slow',
      check: () =>
        new Promise((resolve) => {
          clock.setTimeout(() => resolve({ action: 'allow' }), 70)
        }),
    })
    const outcome = run([slow], 'x', { clock })
    clock.increment(70)
    expect((await outcome).findings[0]?.durationMs).toBe(70)
  })
})

describe('a shield that fails', () => {
  const hostile = {
    get action(): string {
      throw new Error('hands off')
    },
  }
  const failures: [string, Shield, RegExp][] = [
    [
      'throws',
      defineShield({
        name: 'bad',
        check: () => {
          throw new Error('no connection')
        },
      }),
      /it threw: no connection/,
    ],
    [
      'rejects without a reason',
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- as third-party code does
      defineShield({ name: 'bad', check: () => Promise.reject(undefined) }),
      /it threw: undefined was thrown/,
    ],
    ['returns nothing', says('bad', undefined), /returned nothing/],
    ['returns null', says('bad', null), /returned null/],
    ['returns true', says('bad', true), /returned true/],
    ['returns a string', says('bad', 'allow'), /returned a string/],
    ['returns an empty object', says('bad', {}), /without a valid action/],
    ['returns an unknown action', says('bad', { action: 'deny' }), /without a valid action/],
    ['redacts without a text', says('bad', { action: 'redact' }), /'redact' without content/],
    ['redacts to a number', says('bad', { action: 'redact', content: 5 }), /'redact' without content/],
    ['returns an unreadable value', says('bad', hostile), /it threw: hands off/],
  ]

  it.each(failures)('blocks if it %s, by name and with the reason', async (_, shield, words) => {
    const { action, message } = await run([says('good', { action: 'allow' }), shield])
    expect(action).toBe('block')
    expect(message).toMatch(/^Shield 'bad' failed: /)
    expect(message).toMatch(words)
    expect(message).toMatch(/failOpen/)
  })

  it.each(failures)('only warns with failOpen if it %s', async (_, shield, words) => {
    const { action, message } = await run([shield], 'text', { failOpen: true })
    expect(action).toBe('warn')
    expect(message).toMatch(words)
    expect(message).toMatch(/allowed without a check/)
  })

  it('still blocks with failOpen if another one blocks', async () => {
    const blocks = says('strict', { action: 'block', message: 5 })
    const { action, message } = await run([says('bad', 0), blocks], 'text', { failOpen: true })
    expect({ action, message }).toEqual({ action: 'block', message: "Shield 'strict' blocked the content." })
  })

  it('reveals no secret of its error', async () => {
    const key = ['sk', 'proj', 'A1b2C3d4'.repeat(6)].join('-')
    const leaky = defineShield({ name: 'leaky', check: () => Promise.reject(new Error(`bad key ${key}`)) })
    expect((await run([leaky])).message).not.toContain('A1b2C3d4')
  })

  it('returns only verdicts or failures', async () => {
    await fc.assert(
      fc.asyncProperty(fc.anything({ withNullPrototype: true }), fc.boolean(), async (verdict, failOpen) => {
        const { action, content } = await run([says('any', verdict)], 'text', { failOpen })
        const verdictAction = (verdict as { action?: unknown } | null | undefined)?.action
        const isVerdict = verdictAction === 'allow' || verdictAction === 'warn' || verdictAction === 'block'
        expect(action).toBe(isVerdict ? verdictAction : failOpen ? 'warn' : 'block')
        expect(content).toBe('text')
      }),
    )
  })
})

describe('a shield that times out', () => {
  const hangs = (timeoutMs?: number): { shield: Shield; signal: () => AbortSignal | undefined } => {
    let own: AbortSignal | undefined
    const shield = defineShield({
      name: 'slow',
      check: (_, { signal }) => {
        own = signal
        return new Promise(() => undefined)
      },
      ...(timeoutMs !== undefined && { timeoutMs }),
    })
    return { shield, signal: () => own }
  }

  it.each<[string, number | undefined, Partial<RunShieldsOptions>, number]>([
    ['after ten seconds', undefined, {}, 10_000],
    ['after the time limit of all', undefined, { timeoutMs: 300 }, 300],
    ['after its own time limit, before that of all', 20, { timeoutMs: 300 }, 20],
  ])('blocks %s, and its signal aborts', async (_, timeoutMs, options, expected) => {
    const clock = new SimulatedClock()
    const { shield, signal } = hangs(timeoutMs)
    const done = run([shield], 'x', { clock, ...options })
    clock.increment(expected - 1)
    expect(signal()?.aborted).toBe(false)
    clock.increment(1)
    const { message, findings } = await done
    expect(message).toContain(`Shield 'slow' failed: check() took longer than ${expected} ms.`)
    expect(findings[0]?.durationMs).toBe(expected)
    expect(signal()?.reason).toMatchObject({
      name: 'TimeoutError',
      message: `The check took longer than ${expected} ms.`,
    })
  })

  it('does not delay the others, and its late answer changes nothing', async () => {
    const clock = new SimulatedClock()
    let answer: (verdict: ShieldVerdict) => void = () => undefined
    const late = defineShield({
      name: 'late',
      check: () =>
        new Promise((resolve) => {
          answer = resolve
        }),
    })
    const outcome = run([late, says('quick', { action: 'warn' })], 'x', { clock, failOpen: true })
    clock.increment(10_000)
    answer({ action: 'block' })
    expect((await outcome).action).toBe('warn')
  })

  it('leaves no timer if it answers in time', async () => {
    const timers = new Set<unknown>()
    const clock = {
      now: () => 0,
      setTimeout: () => {
        const id = {}
        timers.add(id)
        return id
      },
      clearTimeout: (id: unknown) => {
        timers.delete(id)
      },
    }
    await run([says('a', { action: 'allow' }), says('b', null)], 'x', { clock })
    expect(timers.size).toBe(0)
  })
})

describe('stopping', () => {
  it('resolves immediately and aborts every active check', async () => {
    const controller = new AbortController()
    const reasons: unknown[] = []
    const hang = (name: string): Shield =>
      defineShield({
        name,
        check: (_, { signal }) => {
          signal.addEventListener('abort', () => reasons.push(signal.reason))
          return new Promise(() => undefined)
        },
      })
    const outcome = run([hang('a'), hang('b')], 'x', { signal: controller.signal, failOpen: true })
    controller.abort('enough')
    expect(await outcome).toMatchObject({
      action: 'block',
      message: expect.stringMatching(/'a' was stopped/),
    })
    expect(reasons).toEqual(['enough', 'enough'])
  })

  it('calls no shield if it happened before', async () => {
    let calls = 0
    const counts = defineShield({
      name: 'counts',
      check: () => {
        calls += 1
        return { action: 'allow' }
      },
    })
    const { action } = await run([counts], 'x', { signal: AbortSignal.abort() })
    expect({ action, calls }).toEqual({ action: 'block', calls: 0 })
  })

  it('leaves no listener, however often a signal is used', async () => {
    const { signal } = new AbortController()
    let listeners = 0
    const add = signal.addEventListener.bind(signal)
    const remove = signal.removeEventListener.bind(signal)
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1
      add(...args)
    }
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1
      remove(...args)
    }
    await run([says('a', { action: 'allow' }), says('b', { action: 'block' })], 'x', { signal })
    expect(listeners).toBe(0)
  })
})

describe('redactions', () => {
  it('are applied in sequence, in list order', async () => {
    const { action, content, message } = await run(
      [replaces('one', 'a', 'b'), says('quiet', { action: 'allow' }), replaces('two', 'b', 'c')],
      'a b',
    )
    expect({ action, content, message }).toEqual({ action: 'redact', content: 'c c', message: 'no a\nno b' })
  })

  it('apply to the original for the first shield, and to the result for the others', async () => {
    const seen: string[] = []
    const watches = defineShield({
      name: 'watches',
      check: (content) => {
        seen.push(content)
        return { action: 'redact', content: `${content}!` }
      },
    })
    const { content } = await run([replaces('one', 'a', 'x'), watches], 'a')
    expect({ content, seen }).toEqual({ content: 'x!', seen: ['a', 'x'] })
  })

  it('take the time of both checks', async () => {
    const clock = new SimulatedClock()
    const slow = defineShield({
      name: 'slow',
      check: (content) => {
        clock.increment(30)
        return { action: 'redact', content }
      },
    })
    const { findings } = await run([replaces('one', 'a', 'b'), slow], 'a', { clock })
    expect(findings[1]?.durationMs).toBe(60)
  })

  it('still count if an earlier one has removed the match', async () => {
    const { content, findings } = await run([replaces('one', 'ab', '*'), replaces('two', 'b', '#')], 'ab')
    expect(content).toBe('*')
    expect(findings.map(({ action }) => action)).toEqual(['redact', 'redact'])
  })

  it.each([[false], [true]])(
    'block if a shield with a finding cannot be called again (failOpen: %s)',
    async (failOpen) => {
      let calls = 0
      const moody = defineShield({
        name: 'moody',
        check: () => {
          calls += 1
          if (calls > 1) throw new Error('once is enough')
          return { action: 'redact', content: '' }
        },
      })
      const outcome = await run([replaces('one', 'a', 'b'), moody], 'a', { failOpen })
      expect(outcome).toMatchObject({ action: 'block', content: 'a' })
      expect(outcome.message).toMatch(/'moody' failed: it threw: once is enough/)
    },
  )

  it('yield to a block, which leaves the content unchanged', async () => {
    const outcome = await run([replaces('one', 'a', 'b'), says('strict', { action: 'block' })], 'a')
    expect(outcome).toMatchObject({ action: 'block', content: 'a' })
  })

  it('leave none of the words, in any order of shields', async () => {
    const words = ['ab', 'bc', 'ca', 'abc']
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(words, { minLength: 1 }),
        fc.string({ unit: fc.constantFrom('a', 'b', 'c', ' ') }),
        async (chosen, text) => {
          const { content } = await run(
            chosen.map((word) => replaces(word, word, '*')),
            text,
          )
          for (const word of chosen) expect(content).not.toContain(word)
        },
      ),
    )
  })
})
