import { jest } from '@jest/globals'
import { createAgent, openaiChat, openaiResponses } from '../../../src/index.js'
import { json, serve } from './server.js'

// In a separate file, because the package openai is missing in it.
jest.unstable_mockModule('openai', () => {
  throw Object.assign(new Error("Cannot find package 'openai'"), { code: 'ERR_MODULE_NOT_FOUND' })
})

const content = [{ type: 'output_text', text: 'Hello' }]
const response = { object: 'response', status: 'completed', output: [{ type: 'message', content }] }
const completion = { choices: [{ message: { content: 'Hello' }, finish_reason: 'stop' }] }

test('a model on Node works without the package openai', async () => {
  await using server = await serve(json(200, completion))
  const agent = createAgent({ model: openaiChat({ model: 'm', baseURL: server.baseURL }), stream: false })
  expect((await agent.run('Hi.').result).output).toBe('Hello')
})

test.each([openaiChat, openaiResponses])('%p with a custom fetch works without it, too', async (create) => {
  await using server = await serve(json(200, create === openaiChat ? completion : response))
  const sendsItself: typeof fetch = (...args) => fetch(...args)
  const model = create({ model: 'm', baseURL: server.baseURL, fetch: sendsItself })
  expect((await createAgent({ model, stream: false }).run('Hi.').result).output).toBe('Hello')
})
