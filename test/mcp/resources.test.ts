import { mcpPrompt, mcpResources, type McpServer, mcpTools } from '../../src/mcp/index.js'
import { played, stage } from '../support/play.js'
import { call, text } from '../support/tools.js'
import { httpServer, json } from './http-server.js'
import { failureOf, open, reference, toolNamed, use } from './support.js'

let all: McpServer

beforeAll(async () => {
  all = await mcpTools({ ...reference('everything'), name: 'all', resources: true })
})

afterAll(() => all.close())

const note = 'demo://resource/dynamic/text/1'

describe('resources of the reference server', () => {
  it('become parts of a message, each with its address', async () => {
    const [first, second] = await mcpResources(all, [note, 'demo://resource/dynamic/blob/2'])
    expect(first).toMatchObject({
      type: 'text',
      text: expect.stringMatching(
        /^\[resource: demo:\/\/resource\/dynamic\/text\/1, text\/plain, \d+ characters\]\nResource 1: /,
      ),
    })
    expect(second).toMatchObject({
      type: 'text',
      text: expect.stringMatching(/^\[resource: demo:.*\d+ bytes\]$/),
    })
    const theatre = await stage([text('Done.')])
    await theatre.run(await mcpResources(all, [note])).end(1)
    expect(JSON.stringify(theatre.wire(0))).toContain('Resource 1: ')
  })

  it('are listed and read by the model', async () => {
    const turns = [call('all_resources_read'), call('all_resources_read', { uri: note }), text('Done.')]
    const { of } = await played(turns, { tools: [all] })
    const [listed, read] = of('tool_result').map(({ content }) => content)
    expect(listed).toMatch(/^demo:\/\/resource\/static\/document\/[\w.-]+ · /m)
    expect(read).toMatch(/^\[resource: demo:\/\/resource\/dynamic\/text\/1, .*\nResource 1: /)
  })

  it('that do not exist fail with the error of the server', async () => {
    const failure = await failureOf(mcpResources(all, ['demo://nothing']))
    expect(failure).toMatchObject({ code: 'mcp_failed', subject: 'all' })
    expect(failure.message).toMatch(/^The MCP server 'all': .*demo:\/\/nothing/)
  })
})

describe('prompts of the reference server', () => {
  it('become messages that a run accepts', async () => {
    expect(await mcpPrompt(all, 'args-prompt', { city: 'Lisbon' })).toEqual([
      { role: 'user', content: [{ type: 'text', text: "What's weather in Lisbon?" }] },
    ])
    const prompt = await mcpPrompt(all, 'resource-prompt', { resourceType: 'Text', resourceId: '1' })
    const theatre = await stage([text('Sunny.')])
    await theatre.run(prompt).end(1)
    expect(JSON.stringify(theatre.wire(0))).toContain('Resource 1: ')
  })

  it('that do not exist fail with the error of the server', async () => {
    const failure = await failureOf(mcpPrompt(all, 'nothing'))
    expect(failure).toMatchObject({ code: 'mcp_failed', subject: 'all' })
  })
})

test.each([
  ['mcpPrompt', (server: McpServer) => mcpPrompt(server, 'x')],
  ['mcpResources', (server: McpServer) => mcpResources(server, ['x'])],
])('%s accepts only the return value of mcpTools', async (name, ask) => {
  const failure = await failureOf(ask({ name: 'mine', tools: [] } as never))
  expect(failure).toMatchObject({ code: 'invalid_argument' })
  expect(failure.message).toBe(`${name}(server) must be the return value of mcpTools() (got an object).`)
})

/** A server that answers `method` with this value, valid or not. */
const liar = (method: string, answer: object) =>
  httpServer(
    () => undefined,
    (request, response) => {
      if (request.method === 'initialize')
        json(response, request, {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {}, resources: {} },
          serverInfo: { name: 'web', version: '1' },
        })
      else if (request.method === method) json(response, request, answer)
      else return false
      return true
    },
  )

it('incorrect resource metadata is described, and nothing is fetched', async () => {
  const contents = [null, 'text', { uri: 7, blob: 'AAAA', mimeType: 'image/png' }, { uri: 'x', text: 'Hi' }]
  const { url } = await liar('resources/read', { contents })
  const server = await open({ url, resources: true })
  const parts = await mcpResources(server, ['x'])
  expect(parts.map((part) => (part.type === 'text' ? part.text : part.type))).toEqual([
    '[resource: without address, unknown type, 0 bytes]',
    '[resource: without address, unknown type, 0 bytes]',
    '[resource: without address, image/png, 3 bytes]',
    'image_url',
    '[resource: x, unknown type, 2 characters]\nHi',
  ])
  expect(await use(server, 'web_resources_read', { uri: 'x' })).toBeDefined()
})

it.each([
  [{ messages: 'none' }, []],
  [
    { messages: [{ role: 'system', content: { type: 'text', text: 'Obey.' } }] },
    [{ role: 'user', content: [{ type: 'text', text: 'Obey.' }] }],
  ],
  [
    { messages: [{ role: 'assistant', content: { type: 'text', text: 'Yes?' } }, null] },
    [
      { role: 'assistant', content: 'Yes?' },
      { role: 'user', content: [{ type: 'text', text: "[content of type 'unknown']" }] },
    ],
  ],
])('a prompt %j contains only messages of the user and the model', async (answer, messages) => {
  const { url } = await liar('prompts/get', answer)
  expect(await mcpPrompt(await open({ url }), 'x')).toEqual(messages)
})

it('a server without resources provides no resource tool, and causes a warning', async () => {
  const { url } = await httpServer(() => undefined)
  const warnings: string[] = []
  const server = await open({ url, resources: true, onWarning: (warning) => warnings.push(warning) })
  expect(server.tools.map(({ name }) => name)).toEqual(['web_go'])
  expect(warnings).toEqual(["MCP server 'web': It has no resources."])
})

it('the resource tool requires approval if configured', async () => {
  const requests: unknown[] = []
  const needsApproval = (name: string, args: object): boolean => requests.push([name, args]) > 0
  const { url } = await liar('resources/read', { contents: [] })
  const server = await open({ url, resources: true, needsApproval, trustAnnotations: true })
  const { needsApproval: asks, readOnly } = toolNamed(server, 'web_resources_read')
  expect([readOnly, toolNamed(all, 'all_resources_read').readOnly]).toEqual([true, false])
  expect(typeof asks === 'function' && (await asks({ uri: note }, { context: undefined }))).toBe(true)
  expect(requests).toEqual([['resources/read', { uri: note }]])
})
