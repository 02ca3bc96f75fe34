import { ConfigError, createAgent, defineGuard, openaiChat, type UserGuard } from '../../../src/index.js'

const model = openaiChat({ model: 'm', baseURL: 'http://127.0.0.1:9', apiKey: 'none' })
const verdict = () => undefined

function refusal(run: () => unknown): Pick<ConfigError, 'code' | 'message' | 'subject'> {
  try {
    run()
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error('It was not refused.')
}

describe('defineGuard', () => {
  it('fills in omitted options', () => {
    expect(defineGuard({ name: 'mine', verdict })).toEqual({
      name: 'mine',
      initial: null,
      verdict,
      onHalt: 'error',
      timeoutMs: 5000,
      onError: 'halt',
    })
  })

  it('returns a frozen guard with a copy of its initial state', () => {
    const initial = { seen: [1] }
    const guard = defineGuard({ name: 'mine', initial, verdict })
    initial.seen.push(2)
    expect(guard.initial).toEqual({ seen: [1] })
    expect([guard, guard.initial].map(Object.isFrozen)).toEqual([true, true])
  })

  it('accepts its own return value', () => {
    const guard = defineGuard({ name: 'mine', initial: 1, observe: (n) => n, verdict, onHalt: 'pause' })
    expect(defineGuard(guard)).toEqual(guard)
  })

  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /takes an object/],
    ['a function', verdict, /takes an object/],
    ['no name', { verdict }, /cannot be named a value of type undefined/],
    ['an empty name', { name: '', verdict }, /cannot be named ''/],
    ['a name with spaces', { name: 'my guard', verdict }, /cannot be named 'my guard'/],
    ['the name __proto__', { name: '__proto__', verdict }, /cannot be named '__proto__'/],
    ['a name of 65 characters', { name: 'x'.repeat(65), verdict }, /cannot be named/],
    ['no verdict', { name: 'g' }, /Guard 'g': verdict must be a function/],
    ['an invalid observe', { name: 'g', verdict, observe: true }, /observe must be a function/],
    ['a mistyped option', { name: 'g', verdict, timeout: 5 }, /there is no option 'timeout'.*timeoutMs/],
    ['a time of zero', { name: 'g', verdict, timeoutMs: 0 }, /timeoutMs must be/],
    ['an invalid time', { name: 'g', verdict, timeoutMs: Number.NaN }, /timeoutMs must be/],
    ['an endless time', { name: 'g', verdict, timeoutMs: Infinity }, /from 1 to 2147483647/],
    ['a time as a string', { name: 'g', verdict, timeoutMs: '5' }, /timeoutMs must be/],
    ['an onHalt of null', { name: 'g', verdict, onHalt: null }, /onHalt must be 'error' or 'pause'/],
    ['an unknown onError', { name: 'g', verdict, onError: 'retry' }, /onError must be 'halt' or 'ignore'/],
    [
      'an initial state that is not JSON',
      { name: 'g', verdict, initial: new Set() },
      /initial is not plain JSON/,
    ],
    [
      'an initial state that is too large',
      { name: 'g', verdict, initial: 'x'.repeat(3000) },
      /initial has 3002 bytes/,
    ],
  ])('refuses %s with a sentence', (_, definition, words) => {
    const { code, message } = refusal(() => defineGuard(definition as UserGuard))
    expect(code).toBe('invalid_guard')
    expect(message).toMatch(words)
  })

  it('names the invalid option', () => {
    expect(refusal(() => defineGuard({ name: 'g', verdict, timeoutMs: -1 })).subject).toBe('g.timeoutMs')
  })
})

describe('the guards of an agent', () => {
  it.each<[string, unknown, string, RegExp]>([
    ['not a list', { name: 'g', verdict }, 'invalid_guard', /guards must be an array/],
    [
      'an invalid entry',
      [defineGuard({ name: 'g', verdict }), 7],
      'invalid_guard',
      /guards\[1\] is not a guard/,
    ],
    ['an invalid definition', [{ name: 'g' }], 'invalid_guard', /Guard 'g': verdict must be/],
    [
      'two with one name',
      [1, 2].map(() => defineGuard({ name: 'g', verdict })),
      'duplicate_guard',
      /Rename one/,
    ],
  ])('are refused if they are %s, before anything runs', (_, guards, code, words) => {
    const refused = refusal(() => createAgent({ model, guards: guards as UserGuard[] }))
    expect(refused.code).toBe(code)
    expect(refused.message).toMatch(words)
  })

  it('may be omitted or empty', () => {
    expect(() => createAgent({ model, guards: [] })).not.toThrow()
  })
})
