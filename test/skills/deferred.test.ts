import { defineTool, type Tool, toolSearch } from '../../src/index.js'
import { skills } from '../../src/skills/index.js'
import { memoryStore } from '../../src/stores/index.js'
import { findUnlawful } from '../support/find-unlawful.js'
import { played } from '../support/play.js'
import { call, text } from '../support/tools.js'

const list = [{ name: 'reading', description: 'How to read.', allowedTools: ['read'] }]

test.each(['append', 'dispatch'] as const)(
  'a loaded skill refuses deferred tools before they are loaded, and allowed ones load as usual (%s)',
  async (loading) => {
    const store = memoryStore()
    const ran: string[] = []
    const defer = (name: string): Tool =>
      defineTool({
        name,
        description: `Does ${name}.`,
        input: { type: 'object', properties: {} },
        defer: true,
        execute: () => {
          ran.push(name)
          return 'Done.'
        },
      }) as Tool
    const through = (name: string) =>
      loading === 'append' ? call(name) : call('call_tool', { name, arguments: {} })
    const { result, of } = await played(
      [
        call('load_skill', { name: 'reading' }),
        through('write'),
        call('tool_search', { query: 'write' }),
        through('read'),
        through('read'),
        call('unload_skill', { name: 'reading' }),
        through('write'),
        through('write'),
        text('Done.'),
      ],
      {
        store,
        tools: [defer('read'), defer('write'), toolSearch({ loading })],
        skills: skills({ list, load: () => 'Read first.' }),
        // Rejected calls, and calls that only load their tool, consume no budget.
        limits: { maxToolCalls: 4 },
      },
    )
    expect([result.state, ran]).toEqual(['COMPLETED', ['read', 'write']])
    expect(of('tool_result').map(({ name, status }) => `${name} ${status}`)).toEqual([
      'load_skill ok',
      'write blocked',
      'tool_search blocked',
      'read not_loaded',
      'read ok',
      'unload_skill ok',
      'write not_loaded',
      'write ok',
    ])
    expect(of('tools_loaded').map(({ names }) => names)).toEqual([['read'], ['write']])
    expect(await findUnlawful(store)).toEqual([])
  },
)
