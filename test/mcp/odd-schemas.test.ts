import { createAnthropic } from '@ai-sdk/anthropic'
import type { JsonObject } from '../../machines/agent/json.js'
import { languageModel } from '../../src/ai-sdk/index.js'
import { played, Stage, textOf } from '../support/play.js'
import { call } from '../support/tools.js'
import { startRehearsal } from '../../src/rehearsal/index.js'
import { odd } from './support.js'

const done = { text: 'Done.' }
const names = ['any_of', 'named', 'no_items', 'booleans', 'names', 'keys', 'php', 'typeless', 'strict']

describe('a server whose schemas violate the rules of providers', () => {
  it.each(['chat', 'responses'] as const)(
    'has all of its tools in a request that %s accepts',
    async (api) => {
      const server = await odd('odd-schemas')
      const { result, stage } = await played([done], { tools: [server], api })
      expect(result.state).toBe('COMPLETED')
      expect(server.warnings).toEqual([])
      const tools = stage.requests[0]?.body.tools ?? []
      expect(tools.map((tool) => tool.function?.name)).toEqual(names.map((name) => `odd_${name}`))
      const shown = Object.fromEntries(
        tools.map((tool) => [tool.function?.name, tool.function?.parameters]),
      ) as Record<string, JsonObject>
      expect(shown['odd_any_of']?.properties).toEqual({
        content: { type: 'string' },
        source_url: { type: 'string' },
      })
      expect(shown['odd_named']).toMatchObject({ properties: { id: { type: 'string' } }, required: ['id'] })
      expect(shown['odd_booleans']?.properties).toEqual({ n: { type: 'integer', exclusiveMinimum: 0 } })
      expect(shown['odd_names']?.properties).toEqual({ n: { type: ['integer', 'null'] } })
      expect(shown['odd_php']).toEqual({ type: 'object', properties: {} })
    },
  )

  it('has all of its tools in a request that Claude accepts, with unsupported keywords as text', async () => {
    const server = await odd('odd-schemas')
    const rehearsal = await startRehearsal({ scenario: { turns: [done] }, strict: true })
    const model = languageModel(
      createAnthropic({ baseURL: rehearsal.url, apiKey: 'none' })('claude-sonnet-4-5'),
    )
    const stage = new Stage(rehearsal, { model, tools: [server] })
    expect((await stage.run().run.result).state).toBe('COMPLETED')
    const tools =
      (stage.requests[0]?.sent as { tools: { name: string; input_schema: JsonObject }[] } | undefined)
        ?.tools ?? []
    expect(tools).toHaveLength(names.length)
    expect(tools.find(({ name }) => name === 'odd_keys')?.input_schema).toEqual({
      type: 'object',
      description:
        '(further properties: {"$top":{"type":"integer"},"filter[name]":{}}, required among these: ["$top"])',
      properties: {},
    })
    await stage.close()
  })

  it.each<[string, JsonObject]>([
    ['no_items', { n: [1, 'x'] }],
    ['booleans', { n: 0 }],
    ['names', { n: 1.5 }],
    ['keys', { $top: 5, 'filter[name]': 'x' }],
    ['typeless', {}],
    ['strict', { n: '3', more: true }],
    ['any_of', {}],
  ])('receives the arguments of the call by %s, and validates them itself', async (name, args) => {
    const server = await odd('odd-schemas')
    const { stage } = await played([call(`odd_${name}`, args), done], { tools: [server] })
    expect(textOf(stage.wire(1).find(({ role }) => role === 'tool'))).toBe(JSON.stringify(args))
  })

  it('causes a warning in each run for every omitted tool', async () => {
    const server = await odd('liar')
    const { of } = await played([call('liar_fine'), done], { tools: [server] })
    const warnings = of('warning').filter(({ code }) => code === 'tool_left_out')
    expect(warnings.map(({ message }) => message)).toEqual([...new Set(server.warnings)])
  })

  it('receives no call without a required field', async () => {
    const server = await odd('odd-schemas')
    const { stage } = await played([call('odd_strict', {}), done], { tools: [server] })
    expect(textOf(stage.wire(1).find(({ role }) => role === 'tool'))).toContain('- n: Missing.')
  })
})
