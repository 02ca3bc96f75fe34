import { jest } from '@jest/globals'
import { createAgent, openaiChat, openaiResponses } from '../../../src/index.js'
import { json, serve } from './server.js'

// In a separate file, because the package openai is missing in it.
jest.unstable_mockModule('openai', () => {
  throw Object.assign(new Error("Cannot find package 'openai'"), { code: 'ERR_MODULE_NOT_FOUND' })
})

const completion = { choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] }

test('a model on Node works without the package openai', async () => {
  await using server = await serve(json(200, completion))
  const agent = createAgent({ model: openaiChat({ model: 'm', baseURL: server.baseURL }), stream: false })
  expect((await agent.run('Hi.').result).output).toBe('Hello')
})

test.each([openaiChat, openaiResponses])(
  'if Node cannot send the request, %p names the command that installs it',
  async (create) => {
    await using server = await serve(json(200, completion))
    const sendsItself: typeof fetch = (...args) => fetch(...args)
    const model = create({ model: 'm', baseURL: server.baseURL, fetch: sendsItself })
    const { state, error } = await createAgent({ model }).run('Hi.').result
    expect(state).toBe('ERROR')
    expect(error).toMatchObject({ code: 'missing_package' })
    expect(error?.message).toContain('npm install openai')
    expect(server.requests).toEqual([])
  },
)
