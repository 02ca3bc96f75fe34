import {
  defineShield,
  type Shield,
  createShieldSet,
  type ShieldsOptions,
} from '../../../src/core/shields/index.js'
import { refusal } from './support.js'

const check = () => ({ action: 'allow' }) as const

describe('defineShield', () => {
  it('returns a frozen shield', () => {
    const shield = defineShield({ name: 'mine', check, timeoutMs: 5 })
    expect(shield).toEqual({ name: 'mine', check, timeoutMs: 5 })
    expect(Object.isFrozen(shield)).toBe(true)
  })

  it('accepts its own return value', () => {
    const shield = defineShield({ name: 'mine', check })
    expect(defineShield(shield)).toEqual(shield)
  })

  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /takes an object/],
    ['a function', check, /takes an object/],
    ['no name', { check }, /cannot be named a value of type undefined/],
    ['an empty name', { name: '', check }, /cannot be named ''/],
    ['a name with spaces', { name: 'my shield', check }, /cannot be named 'my shield'/],
    ['a name of 65 characters', { name: 'x'.repeat(65), check }, /cannot be named/],
    ['no check', { name: 's' }, /Shield 's': check must be a function/],
    ['an invalid check', { name: 's', check: true }, /check must be a function/],
    ['a mistyped option', { name: 's', check, timeout: 5 }, /there is no option 'timeout'.*timeoutMs/],
    ['a time of zero', { name: 's', check, timeoutMs: 0 }, /timeoutMs must be/],
    ['an invalid time', { name: 's', check, timeoutMs: Number.NaN }, /timeoutMs must be/],
    ['an endless time', { name: 's', check, timeoutMs: Infinity }, /from 1 to 2147483647/],
    ['a time as a string', { name: 's', check, timeoutMs: '5' }, /timeoutMs must be/],
  ])('refuses %s with a sentence', (_, definition, words) => {
    const { code, message } = refusal(() => defineShield(definition as Shield))
    expect(code).toBe('invalid_shield')
    expect(message).toMatch(words)
  })
})

describe('the shields of an agent', () => {
  it('default to none, with ten seconds per check, and fail closed', () => {
    expect(createShieldSet()).toEqual({
      input: [],
      toolInput: [],
      toolOutput: [],
      output: [],
      timeoutMs: 10_000,
      failOpen: false,
      holdBack: 200,
    })
  })

  it('may apply at several points', () => {
    const shield = defineShield({ name: 'mine', check })
    const { input, output } = createShieldSet({ input: [shield], output: [shield] })
    expect([input, output]).toEqual([[shield], [shield]])
  })

  const shield = defineShield({ name: 'twin', check })
  const holes: Shield[] = []
  holes.length = 2
  it.each<[string, unknown, string, RegExp]>([
    [
      'two with one name at one point',
      { input: [shield, shield] },
      'duplicate_shield',
      /shields\.input.*'twin'/,
    ],
    ['null among them', { output: [null] }, 'invalid_shield', /shields\.output\[0\] is not a shield/],
    ['a hole among them', { output: holes }, 'invalid_shield', /shields\.output\[0\] is not a shield/],
    ['an invalid definition', { output: [{ name: 'x' }] }, 'invalid_shield', /check must be a function/],
    ['an unknown point', { tool: [] }, 'invalid_option', /shields\.tool is not an option.*toolInput/],
    ['not a list', { input: shield }, 'invalid_option', /shields\.input must be an array/],
    ['a list instead of the points', [shield], 'invalid_option', /must be an object/],
    ['null', null, 'invalid_option', /must be an object/],
    ['an invalid time', { timeoutMs: -1 }, 'invalid_option', /shields\.timeoutMs must be/],
    ['a string as failOpen', { failOpen: 'no' }, 'invalid_option', /shields\.failOpen must be true or false/],
  ])('are refused with %s', (_, options, code, words) => {
    const error = refusal(() => createShieldSet(options as ShieldsOptions))
    expect(error.code).toBe(code)
    expect(error.message).toMatch(words)
  })
})
