import { readFileSync } from 'node:fs'
import { encode } from 'gpt-tokenizer'
import { defineTool, type Tool, toolSearch } from '../../src/index.js'
import { startRehearsal, type Turn } from '../../src/rehearsal/index.js'
import { longTest } from '../support/extent.js'
import { manyTools } from '../support/many-tools.js'
import { Stage } from '../support/play.js'
import { call, text } from '../support/tools.js'

type Mode = 'all' | 'append' | 'dispatch'

/** A result of a few hundred tokens. */
const row = JSON.stringify({
  id: 'a-1042',
  title: 'A title',
  owner: 'someone',
  links: ['x', 'y'],
  body: 'words '.repeat(300),
})

const toolsOf = (mode: Mode): Tool[] => [
  ...manyTools.map(
    ({ name, description, parameters }) =>
      defineTool({
        name,
        description,
        input: parameters as { type: 'object' },
        defer: mode !== 'all',
        execute: () => row,
      }) as Tool,
  ),
  ...(mode === 'all' ? [] : [toolSearch({ loading: mode, limit: 3 })]),
]

const work = ['billing_list_invoice', 'mail_search_message', 'calendar_list_event', 'files_get_file']

/** A session with this many searches, each followed by five calls. */
function turnsOf(mode: Mode, searches: number): Turn[] {
  const use = (name: string): Turn => {
    const input = { workspace_id: 'w', [`${name.split('_').slice(2).join('_')}_id`]: 'a-1042' }
    return mode === 'dispatch' ? call('call_tool', { name, arguments: input }) : call(name, input)
  }
  return [
    ...work
      .slice(0, searches)
      .flatMap((name) => [
        ...(mode === 'all' ? [] : [call('tool_search', { query: name.replaceAll('_', ' ') })]),
        ...Array.from({ length: 5 }, () => use(name)),
      ]),
    text('Done.'),
  ]
}

/** Total and uncached tokens that the provider reads. Its cache holds request prefixes. */
async function measure(mode: Mode, searches: number) {
  // A strict server rejects this many tools, as OpenAI does.
  const rehearsal = await startRehearsal({ scenario: { turns: turnsOf(mode, searches) } })
  const theatre = new Stage(rehearsal, {
    tools: toolsOf(mode),
    instructions: 'Be brief.',
    guardrails: { progress: null },
  })
  const { state } = await theatre.run('Work.').run.result
  let before: number[] = []
  const sums = { first: 0, all: 0, fresh: 0 }
  for (const { body } of theatre.requests) {
    const { tools, messages } = body as unknown as { tools: object[]; messages: object[] }
    const now = [...tools, ...messages].flatMap((part) => encode(JSON.stringify(part)))
    const parts = before.findIndex((token, i) => now[i] !== token)
    const common = parts < 0 ? before.length : parts
    sums.first ||= now.length
    sums.all += now.length
    sums.fresh += now.length - common
    before = now
  }
  await theatre.close()
  expect(state).toBe('COMPLETED')
  return sums
}

longTest(
  'the figures of the docs about deferred tools are those of this session',
  async () => {
    const rows: string[] = []
    const show = (tokens: number): string =>
      Math.round(tokens / 100)
        .toString()
        .replace(/(\d)$/, '.$1')
    for (const searches of [1, 4]) {
      for (const mode of ['all', 'append', 'dispatch'] as const) {
        const { first, all, fresh } = await measure(mode, searches)
        rows.push(
          `| ${searches} | ${mode === 'all' ? 'no' : `\`${mode}\``} | ${show(first)} | ${show(all)} | ${show(fresh)} |`,
        )
      }
    }
    const page = readFileSync(new URL('../../docs/deferred-tools.md', import.meta.url), 'utf8')
    expect(page.split('\n').filter((line) => /^\| [14] \|/.test(line))).toEqual(rows)
  },
  60_000,
)
