import * as fc from 'fast-check'
import type { Setting, Settings } from '../../../guards/lib/settings.js'
import { guards, noGuards } from '../../../guards/roster.js'
import type { AgentConfig, AgentConfigInput, PresetName } from '../../../machines/agent/config.js'
import { parseConfigFile } from '../../../src/core/config/config-file.js'
import { enabledGuards } from '../../../src/core/config/defaults.js'
import { defaultConfig, overrideLimits, resolveConfig } from '../../../src/core/config/resolve-config.js'
import type { KindInput } from '../../../src/core/config/kind.js'
import type { agentSchema, GivenConfig } from '../../../src/core/config/agent-sections.js'
import { presets } from '../../../src/core/config/presets.js'
import { ConfigError } from '../../../src/core/base/errors.js'
import { sampled } from '../../support/extent.js'

/** The error that rejects the input. */
function refused(input: unknown, base?: AgentConfig): ConfigError {
  try {
    resolveConfig(input, base)
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error(`${JSON.stringify(input)} was accepted`)
}

/** An object with one value at a dotted path. */
function at(path: string, value: unknown): unknown {
  return path.split('.').reduceRight((inner: unknown, key) => ({ [key]: inner }), value)
}

/** The numeric guard settings and their minimums. */
function numbersIn(settings: Settings<object>, parent: string): { path: string; from: number }[] {
  return Object.entries(settings as Record<string, Setting>).flatMap(([key, setting]) => {
    const path = `${parent}.${key}`
    if (typeof setting !== 'object') return []
    if ('has' in setting) return numbersIn(setting.has, path)
    return 'from' in setting ? [{ path, from: setting.from }] : []
  })
}
const numbersOfGuards = guards.flatMap(([key, { settings }]) => numbersIn(settings, `guardrails.${key}`))

const zeroIsOff = [
  'limits.timeoutMs',
  'limits.tokenBudget',
  'limits.outputTokens',
  'limits.costLimit',
  'streamIdleMs',
  'storeTimeoutMs',
  'contentIdleMs',
  'toolCalls.timeoutMs',
  'completion.maxOutputRepairs',
  'context.window',
  'guardrails.maxTokensRecoveries',
  'guardrails.reserveTokens',
  'guardrails.reserveCostFraction',
]
const zeroIsZero = [
  'retry.baseDelayMs',
  'retry.maxDelayMs',
  'retry.maxRetryAfterMs',
  'guardrails.emptyAnswer.reprompts',
  'guardrails.emptyAnswer.retries',
  ...numbersOfGuards.filter(({ from }) => from === 0).map(({ path }) => path),
]
const zeroIsRefused = [
  'limits.maxSteps',
  'retry.maxAttempts',
  'retry.rateLimitAttempts',
  'toolCalls.concurrency',
  'toolCalls.maxResultChars',
  'guardrails.maxRepeatedToolSteps',
  ...numbersOfGuards.filter(({ from }) => from > 0).map(({ path }) => path),
]
const numbers = [...zeroIsOff, ...zeroIsZero, ...zeroIsRefused]
const on = [...guards.filter(([, { isOn }]) => isOn).map(([key]) => key), 'emptyAnswer']
const off = guards.filter(([, { isOn }]) => !isOn).map(([key]) => key)

/** Every guard's settings with the guard enabled. */
const everything = { ...defaultConfig, guardrails: { ...defaultConfig.guardrails, ...enabledGuards } }

/** Every dotted path of the defaults that leads to a single value. */
function leaves(value: object, parent = ''): string[] {
  return Object.entries(value).flatMap(([key, inner]: [string, unknown]) =>
    typeof inner === 'object' && inner !== null ? leaves(inner, `${parent}${key}.`) : [parent + key],
  )
}

function read(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((inner, key) => Object(inner)[key], value)
}

describe('resolveConfig', () => {
  test('a guard with bounded memory accepts no larger number', () => {
    const found = refused({ guardrails: { cycle: { maxPeriod: 9 }, progress: { memory: 65 } } }).message
    expect(found).toContain('guardrails.cycle.maxPeriod must be a whole number from 2 to 8 (got 9)')
    expect(found).toContain('guardrails.progress.memory must be a whole number from 1 to 64 (got 65)')
  })

  test('empty options resolve to the documented defaults', () => {
    expect(resolveConfig(undefined)).toEqual(defaultConfig)
    expect(resolveConfig({})).toEqual(defaultConfig)
    expect(resolveConfig({ limits: undefined, retry: { maxAttempts: undefined } })).toEqual(defaultConfig)
    expect(defaultConfig.limits).toEqual({
      maxSteps: 50,
      maxToolCalls: null,
      maxToolCallsPerResponse: null,
      timeoutMs: 0,
      tokenBudget: 0,
      outputTokens: 0,
      costLimit: 0,
      onLimit: 'stop',
      onNearBudget: 'warn',
    })
    expect(defaultConfig.guardrails).toEqual({
      ...noGuards,
      maxTokensRecoveries: 2,
      maxRepeatedToolSteps: 3,
      reserveTokens: 512,
      reserveCostFraction: 0.1,
      progress: expect.objectContaining({ stale: { nudgeAt: 2, blockAt: 4, haltAt: 20 }, onHalt: 'pause' }),
      terminalDelegation: { onHalt: 'error' },
      emptyAnswer: { reprompts: 2, retries: 1 },
    })
  })

  test('an option changes only its key', () => {
    const config = resolveConfig({ limits: { maxSteps: 7 }, guardrails: { emptyAnswer: { retries: 9 } } })
    expect(config).toEqual({
      ...defaultConfig,
      limits: { ...defaultConfig.limits, maxSteps: 7 },
      guardrails: { ...defaultConfig.guardrails, emptyAnswer: { reprompts: 2, retries: 9 } },
    })
  })

  test('the result is frozen at every depth, and the input is not', () => {
    const input = { guardrails: { cycle: { haltAt: 5 } } }
    const config = resolveConfig(input)
    for (const value of [config, config.limits, config.guardrails, config.guardrails.cycle]) {
      expect(Object.isFrozen(value)).toBe(true)
    }
    expect(Object.isFrozen(input)).toBe(false)
    expect(Object.isFrozen(input.guardrails.cycle)).toBe(false)
  })

  test('a base configuration is neither changed nor frozen', () => {
    const base = structuredClone(defaultConfig)
    const config = resolveConfig({ limits: { maxSteps: 1 } }, base)
    expect(base).toEqual(defaultConfig)
    expect(Object.isFrozen(base.guardrails)).toBe(false)
    expect(config.guardrails).not.toBe(base.guardrails)
  })

  test('every number is listed in one of the three groups below', () => {
    const known = leaves(everything).filter((path) => typeof read(everything, path) === 'number')
    expect(known.sort()).toEqual(numbers.filter((path) => read(everything, path) !== null).toSorted())
  })

  test.each(numbers)('%s refuses anything but a number from 0, and names itself', (path) => {
    for (const value of [-1, -0.5, Number.NaN, Infinity, -Infinity, '3', true, [], {}, 3n, Symbol('3')]) {
      const error = refused(at(path, value))
      expect(error.code).toBe('invalid_config')
      expect(error.subject).toBe(path)
      expect(error.message).toContain(`${path} must be a`)
    }
  })

  test.each(zeroIsOff)('%s: 0 and null disable it', (path) => {
    expect(read(resolveConfig(at(path, 0)), path)).toBe(0)
    expect(read(resolveConfig(at(path, null)), path)).toBe(0)
  })

  test.each(zeroIsZero)('%s accepts 0, and refuses null', (path) => {
    expect(read(resolveConfig(at(path, 0)), path)).toBe(0)
    expect(refused(at(path, null)).subject).toBe(path)
  })

  test.each(zeroIsRefused)('%s refuses 0', (path) => {
    expect(refused(at(path, 0)).message).toMatch(/must be a whole number (of at least|from) [12].*\(got 0\)/)
  })

  test.each([
    ...zeroIsRefused,
    'limits.tokenBudget',
    'limits.outputTokens',
    'guardrails.maxTokensRecoveries',
  ])('%s is a count, so it refuses 2.5 and unsafe integers', (path) => {
    expect(refused(at(path, 2.5)).subject).toBe(path)
    expect(refused(at(path, 2 ** 60)).subject).toBe(path)
  })

  test('costLimit accepts cents, and durations accept fractions', () => {
    expect(resolveConfig({ limits: { costLimit: 0.05, timeoutMs: 0.5 } }).limits).toMatchObject({
      costLimit: 0.05,
      timeoutMs: 0.5,
    })
  })

  test('reserveCostFraction is at most 1', () => {
    expect(resolveConfig({ guardrails: { reserveCostFraction: 1 } }).guardrails.reserveCostFraction).toBe(1)
    expect(refused({ guardrails: { reserveCostFraction: 1.01 } }).message).toContain('from 0 to 1')
  })

  test('maxSteps: null removes the cap, and 0 is refused with that hint', () => {
    expect(resolveConfig({ limits: { maxSteps: null } }).limits.maxSteps).toBeNull()
    expect(refused({ limits: { maxSteps: 0 } }).message).toBe(
      'Invalid configuration:\n  limits.maxSteps must be a whole number of at least 1, or null for no cap (got 0).',
    )
  })

  test.each([...on, ...off])('guardrails.%s: null disables the guard', (guard) => {
    expect(read(resolveConfig({ guardrails: { [guard]: null } }), `guardrails.${guard}`)).toBeNull()
  })

  test.each(on)('guardrails.%s: {} keeps the defaults of the guard, and enables it again', (guard) => {
    const without = resolveConfig({ guardrails: { [guard]: null } })
    expect(resolveConfig({ guardrails: { [guard]: {} } })).toEqual(defaultConfig)
    expect(resolveConfig({ guardrails: { [guard]: {} } }, without)).toEqual(defaultConfig)
    expect(resolveConfig({}, without)).toEqual(without)
  })

  test.each(off)('guardrails.%s is off by default, and {} enables it', (guard) => {
    expect(resolveConfig({ guardrails: { [guard]: {} } }).guardrails[guard]).toEqual(enabledGuards[guard])
    const resolved = resolveConfig({ guardrails: { progress: null } })
    expect(resolveConfig({ guardrails: { [guard]: {} } }, resolved).guardrails).toEqual({
      ...resolved.guardrails,
      [guard]: enabledGuards[guard],
    })
  })

  test.each([
    [{ repeatedCall: {} }, ['stale']],
    [{ maxRepeatedToolSteps: 5 }, ['stale']],
    [{ maxRepeatedToolSteps: null }, ['stale']],
    [{ repeatedOutput: null }, []],
    [{ cycle: { haltAt: 4 } }, ['mixed']],
    [
      { failing: { any: 9 } },
      ['failing', 'sameError', 'unknownTools', 'refused', 'policyDenied', 'transient'],
    ],
  ] as [AgentConfigInput['guardrails'], string[]][])(
    'setting %j disables the matching part of progress',
    (input, parts) => {
      const { progress } = resolveConfig({ guardrails: input }).guardrails
      const overrides = Object.fromEntries(parts.map((part) => [part, null]))
      expect(progress).toEqual({ ...defaultConfig.guardrails.progress, ...overrides })
    },
  )

  test('a part of progress that is set stays, whatever else is set', () => {
    const { progress, repeatedCall } = resolveConfig({
      guardrails: { maxRepeatedToolSteps: 9, progress: { stale: { haltAt: 30 }, mixed: undefined } },
    }).guardrails
    expect(repeatedCall).toEqual(enabledGuards.repeatedCall)
    expect(progress).toMatchObject({
      stale: { nudgeAt: 2, haltAt: 30 },
      mixed: { haltAt: 20 },
    })
  })

  test('a preset keeps the progress guard off, whatever is added to it', () => {
    for (const preset of [presets.aar, presets.openhuman, presets.llamaStack, presets.strands]) {
      const guardrails = { ...preset.guardrails, cycle: {} }
      expect(resolveConfig({ ...preset, guardrails }).guardrails.progress).toBeNull()
    }
  })

  test.each([
    ['progress.stale', { stale: { nudgeAt: 21 } }, 'nudgeAt (21)', 20],
    ['progress.mixed', { mixed: { blockAt: 30 } }, 'blockAt (30)', 20],
    ['progress.sameError', { sameError: { haltAt: 4 } }, 'nudgeAt (5)', 4],
  ])('guardrails.%s: a threshold beyond the halt is refused', (path, progress, key, haltAt) => {
    const { message, subject } = refused({ guardrails: { progress } })
    expect(message).toContain(
      `guardrails.${path}.${key} must not exceed guardrails.${path}.haltAt (${haltAt}).`,
    )
    expect(subject).toBe(`guardrails.${path}.${key.split(' ')[0]}`)
  })

  test('a stage of progress with null never applies', () => {
    const { progress } = resolveConfig({
      guardrails: { progress: { stale: { haltAt: null, nudgeAt: 99 } } },
    }).guardrails
    expect(progress?.stale).toEqual({ nudgeAt: 99, blockAt: 4, haltAt: null })
  })

  test('maxRepeatedToolSteps: null disables the repeated-call guard', () => {
    const { guardrails } = resolveConfig({ guardrails: { maxRepeatedToolSteps: null } })
    expect(guardrails.repeatedCall).toBeNull()
    expect(guardrails.maxRepeatedToolSteps).toBe(3)
  })

  test.each(leaves(defaultConfig).filter((path) => typeof read(defaultConfig, path) === 'string'))(
    '%s refuses unknown values, and lists the valid ones',
    (path) => {
      const error = refused(at(path, 'perhaps'))
      expect(error.subject).toBe(path)
      expect(error.message).toMatch(/must be '\w+'( or '\w+')+ \(got 'perhaps'\)/)
      expect(error.message).toContain(`'${String(read(defaultConfig, path))}'`)
    },
  )

  test.each(leaves(defaultConfig).filter((path) => typeof read(defaultConfig, path) === 'boolean'))(
    '%s refuses anything but true and false',
    (path) => {
      for (const value of ['true', 1, 0, null, {}]) {
        expect(refused(at(path, value)).message).toContain(`${path} must be true or false`)
      }
    },
  )

  test.each([
    '',
    ...Object.keys(defaultConfig).filter((key) => typeof read(defaultConfig, key) === 'object'),
  ])('section "%s" refuses anything but a plain object', (path) => {
    for (const value of [null, [], 'x', 1, new Map([['maxSteps', 3]]), new Date(0), () => ({})]) {
      const error = refused(path === '' ? value : at(path, value))
      expect(error.subject).toBe(path === '' ? undefined : path)
      expect(error.message).toContain(`${path || 'It'} must be an object with any of `)
    }
  })

  test.each([
    [{ limits: { maxStep: 3 } }, 'limits.maxStep', 'Did you mean limits.maxSteps?'],
    [{ limits: { max_steps: 3 } }, 'limits.max_steps', 'Did you mean limits.maxSteps?'],
    [{ limits: { timeout: 3 } }, 'limits.timeout', 'Did you mean limits.timeoutMs?'],
    [{ maxSteps: 3 }, 'maxSteps', 'Did you mean limits.maxSteps?'],
    [{ limit: {} }, 'limit', 'Did you mean limits?'],
    [{ guardrails: { faling: {} } }, 'guardrails.faling', 'Did you mean guardrails.failing?'],
    [
      { guardrails: { cycle: { haltAfter: 3 } } },
      'guardrails.cycle.haltAfter',
      'Did you mean guardrails.cycle.haltAt?',
    ],
    [
      { limits: { colour: 3 } },
      'limits.colour',
      'Known keys: maxSteps, maxToolCalls, maxToolCallsPerResponse, timeoutMs, tokenBudget,',
    ],
    [{ 'a b': 1 }, '["a b"]', 'Known keys: limits, budget, retry,'],
    [JSON.parse('{ "limits": { "__proto__": {} } }') as unknown, 'limits.__proto__', 'Known keys: '],
    [{ limits: { constructor: 1 } }, 'limits.constructor', 'Known keys: '],
  ])('the unknown key of %j is refused: %s', (input, subject, hint) => {
    const error = refused(input)
    expect(error.subject).toBe(subject)
    expect(error.message).toContain(`${subject} is not a known key. ${hint}`)
  })

  test('a mistyped option next to the sections is recognized', () => {
    expect(() => resolveConfig({ instruction: '' }, defaultConfig, ['model', 'instructions'])).toThrow(
      'instruction is not a known key. Did you mean instructions?',
    )
  })

  test('each problem has a separate line', () => {
    const error = refused({ stream: 1, limits: { maxSteps: 0, costLimit: -1, colour: 1, taste: 2 } })
    expect(error.message.split('\n')).toHaveLength(6)
    expect(error.message).toMatch(/^Invalid configuration:\n {2}/)
    for (const path of ['stream', 'limits.maxSteps', 'limits.costLimit', 'limits.colour', 'limits.taste']) {
      expect(error.message).toContain(`\n  ${path} `)
    }
  })

  test('settings that contradict each other are refused by both names', () => {
    const error = refused({ guardrails: { cycle: { haltAt: 2, nudgeAt: 5 } } })
    expect(error.subject).toBe('guardrails.cycle.nudgeAt')
    expect(error.message).toContain('nudgeAt (5) must not exceed guardrails.cycle.haltAt (2)')
    const base = resolveConfig({ guardrails: { cycle: { nudgeAt: 6, haltAt: 8 } } })
    expect(refused({ guardrails: { cycle: { haltAt: 4 } } }, base).subject).toBe('guardrails.cycle.nudgeAt')
  })

  test('an unreadable input is refused like any other', () => {
    const hostile = {
      get limits(): never {
        throw new Error('no')
      },
    }
    expect(refused(hostile).message).toContain('cannot be read')
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    expect(refused({ limits: proxy }).code).toBe('invalid_config')
  })

  test('long values and long keys are truncated in the message', () => {
    expect(refused({ limits: { onLimit: 'x'.repeat(10_000) } }).message.length).toBeLessThan(300)
    expect(refused({ limits: { ['x'.repeat(10_000)]: 1 } }).message.length).toBeLessThan(400)
  })

  test('each preset is a valid configuration', () => {
    for (const preset of Object.values(presets))
      expect(resolveConfig(resolveConfig(preset))).toEqual(resolveConfig(preset))
  })

  test('any input is refused with a ConfigError, or resolves to a configuration that resolves to itself', () => {
    const paths = [...leaves(defaultConfig), ...[...on, ...off].map((guard) => `guardrails.${guard}`)]
    const value = fc.oneof(
      fc.constantFrom(
        null,
        undefined,
        0,
        1,
        2,
        3,
        0.5,
        -1,
        true,
        false,
        'stop',
        'next',
        'all',
        'pause',
        'run',
        {},
      ),
      fc.anything(),
    )
    const settings = fc
      .array(fc.tuple(fc.constantFrom(...paths), value), { maxLength: 6 })
      .map((entries) =>
        entries.reduce<unknown>((input, [path, leaf]) => put(input, path.split('.'), leaf), {}),
      )
    let accepted = 0
    fc.assert(
      fc.property(fc.oneof({ weight: 9, arbitrary: settings }, fc.anything()), (input) => {
        let config: AgentConfig
        try {
          config = resolveConfig(input)
        } catch (error) {
          expect(error).toBeInstanceOf(ConfigError)
          return
        }
        accepted++
        expect(resolveConfig(config)).toEqual(config)
        expect(resolveConfig({}, config)).toEqual(config)
        expect(JSON.parse(JSON.stringify(config))).toEqual(config)
      }),
      { numRuns: sampled(1_000) },
    )
    expect(accepted).toBeGreaterThan(sampled(50))
  })
})

function put(target: unknown, [key, ...rest]: string[], value: unknown): unknown {
  if (key === undefined) return value
  const object = typeof target === 'object' && target !== null && !Array.isArray(target) ? target : {}
  return { ...object, [key]: put(Reflect.get(object, key), rest, value) }
}

describe('overrideLimits', () => {
  const config = resolveConfig({ limits: { maxSteps: 10, costLimit: 2 }, stream: false })

  test('the run’s limits override the agent’s, key by key', () => {
    expect(overrideLimits(config, { maxSteps: 3, timeoutMs: 50 })).toEqual({
      ...config,
      limits: { ...config.limits, maxSteps: 3, timeoutMs: 50 },
    })
  })

  test('empty options keep the agent’s limits', () => {
    expect(overrideLimits(config, undefined)).toEqual(config)
    expect(overrideLimits(config, {})).toEqual(config)
  })

  test('null lifts a limit for this run', () => {
    expect(overrideLimits(config, { maxSteps: null, costLimit: null }).limits).toMatchObject({
      maxSteps: null,
      costLimit: 0,
    })
  })

  test.each([null, 5, [], { maxStep: 1 }, { maxSteps: -1 }, { costLimit: Number.NaN }])(
    '%j is refused',
    (limits) => {
      expect(() => overrideLimits(config, limits)).toThrow(ConfigError)
    },
  )
})

// Compile-time check that the schema's input and output match the plain types in both directions.
type Input = KindInput<typeof agentSchema>
const toInput = (input: Input): AgentConfigInput => input
const written = (input: AgentConfigInput): Input => input
const toConfig = (config: GivenConfig): AgentConfigInput => config
const whole = (config: AgentConfig): Input => config

test('the schema and the plain types agree', () => {
  for (const check of [toInput, written, toConfig, whole]) expect(check).toBeInstanceOf(Function)
})

describe('preset:', () => {
  const names = Object.keys(presets) as PresetName[]

  it.each(names)('%s is the base, and other keys override it one by one', (preset) => {
    const spread = resolveConfig(presets[preset])
    expect(resolveConfig({ preset })).toEqual(spread)
    expect(resolveConfig({ preset, limits: { costLimit: 2 }, stream: false })).toEqual({
      ...spread,
      limits: { ...spread.limits, costLimit: 2 },
      stream: false,
    })
    expect(resolveConfig({ preset, guardrails: { repeatedCall: { haltAt: 'next' } } }).guardrails).toEqual({
      ...spread.guardrails,
      repeatedCall: { ...enabledGuards.repeatedCall, ...spread.guardrails.repeatedCall, haltAt: 'next' },
    })
  })

  it.each([
    ['openhumen', "There is no preset 'openhumen'. Did you mean 'openhuman'?"],
    ['toString', "There is no preset 'toString'. The presets are aar, "],
    ['', "There is no preset ''. The presets are aar, "],
  ])('an unknown name is refused: %s', (preset, message) => {
    for (const refuse of [
      () => resolveConfig({ preset }),
      () => parseConfigFile(JSON.stringify({ preset }), 'agent.json'),
    ])
      expect(refuse).toThrow(
        expect.objectContaining({
          code: 'invalid_config',
          subject: 'preset',
          message: expect.stringContaining(message),
        }),
      )
    expect(() => resolveConfig({ preset: 3 })).toThrow('preset must be a preset name (got 3)')
    expect(() => resolveConfig({ presets: 'aar' })).toThrow('Did you mean preset?')
  })
})
