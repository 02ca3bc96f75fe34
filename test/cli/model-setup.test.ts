import { resolveModelOptions } from '../../src/cli/model-setup.js'

const none = { model: undefined, baseURL: undefined }

describe('the model of a run', () => {
  test('is not set without a key or a base URL', () => {
    expect(
      resolveModelOptions({ ...none, model: 'gpt-5' }, {}, { OPENAI_API_KEY: ' ', OPENAI_BASE_URL: '' }),
    ).toBeNull()
  })

  test('is taken from the option, then from the file, then from the environment', () => {
    const env = { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: 'http://env/v1', OPENAI_MODEL: 'env' }
    const file = { model: { model: 'file', baseURL: 'http://file/v1' } }
    expect(resolveModelOptions({ model: 'option', baseURL: 'http://option/v1' }, file, env)).toMatchObject({
      model: 'option',
      baseURL: 'http://option/v1',
    })
    expect(resolveModelOptions(none, file, env)).toMatchObject({ model: 'file', baseURL: 'http://file/v1' })
    expect(resolveModelOptions(none, {}, env)).toEqual({
      model: 'env',
      baseURL: 'http://env/v1',
      apiKey: 'k',
    })
  })

  test('has a default at OpenAI, and must be named elsewhere', () => {
    expect(resolveModelOptions(none, {}, { OPENAI_API_KEY: 'k' })).toMatchObject({ model: 'gpt-5-mini' })
    expect(() => resolveModelOptions({ ...none, baseURL: 'http://h/v1' }, {}, {})).toThrow(
      'No model is named for http://h/v1.',
    )
  })

  test("gets the key from the file's variable, and fails if it is empty", () => {
    const file = { model: { model: 'm', baseURL: 'http://h/v1', apiKeyEnv: 'OTHER_KEY' } }
    expect(resolveModelOptions(none, file, { OPENAI_API_KEY: 'k', OTHER_KEY: 'other' })).toMatchObject({
      apiKey: 'other',
    })
    expect(() => resolveModelOptions(none, file, { OPENAI_API_KEY: 'k' })).toThrow('OTHER_KEY is not set')
  })

  test('never sends OPENAI_API_KEY to an address that only a file names', () => {
    const file = { model: { model: 'm', baseURL: 'http://stranger/v1' } }
    expect(resolveModelOptions(none, file, { OPENAI_API_KEY: 'secret' })?.apiKey).not.toBe('secret')
    expect(
      resolveModelOptions({ ...none, baseURL: 'http://mine/v1' }, file, { OPENAI_API_KEY: 'secret' })?.apiKey,
    ).toBe('secret')
  })

  test('passes on the rest of the section, but not the name of the variable', () => {
    const file = { model: { model: 'm', apiKeyEnv: 'K', query: { 'api-version': '1' }, timeoutMs: 5 } }
    expect(resolveModelOptions(none, file, { K: 'k' })).toEqual({
      model: 'm',
      baseURL: undefined,
      apiKey: 'k',
      query: { 'api-version': '1' },
      timeoutMs: 5,
    })
  })

  test('refuses an invalid base URL in the environment', () => {
    expect(() => resolveModelOptions(none, {}, { OPENAI_BASE_URL: 'localhost' })).toThrow(
      'OPENAI_BASE_URL must be an http(s) URL',
    )
  })
})
