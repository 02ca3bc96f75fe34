import { resolveRequestOptions } from '../../../src/core/config/request-options.js'
import { ConfigError } from '../../../src/core/base/errors.js'

describe('resolveRequestOptions', () => {
  test('valid options are returned without undefined values', () => {
    expect(
      resolveRequestOptions({ sampling: { temperature: 0, seed: undefined }, toolChoice: 'auto' }),
    ).toStrictEqual({
      sampling: { temperature: 0 },
      toolChoice: 'auto',
    })
    expect(resolveRequestOptions(undefined)).toEqual({})
  })

  test.each([
    [{ sampling: { temperature: Number.NaN } }, 'sampling.temperature'],
    [{ sampling: { temprature: 1 } }, 'sampling.temprature'],
    [{ sampling: null }, 'sampling'],
    [{ extraBody: { when: new Date(0) } }, 'extraBody.when'],
    [{ extraBody: { fn: () => 1 } }, 'extraBody.fn'],
    [{ extraBody: { n: [Infinity] } }, 'extraBody.n'],
    [{ instructions: {} }, 'instructions'],
  ])('%j is refused at %s', (options, subject) => {
    expect(() => resolveRequestOptions(options)).toThrow(
      expect.objectContaining({ code: 'invalid_config', subject }),
    )
  })

  test('a cycle in extraBody is refused', () => {
    const extraBody: Record<string, unknown> = {}
    extraBody.self = { extraBody }
    expect(() => resolveRequestOptions({ extraBody })).toThrow(ConfigError)
  })
})
