import * as fc from 'fast-check'
import { defineTool, type Tool, toolSearch } from '../../../src/index.js'
import { createToolIndex, writeIndex } from '../../../src/core/tools/tool-search.js'
import { manyTools } from '../../support/many-tools.js'
import { sampled } from '../../support/extent.js'

const tools = manyTools.map(
  ({ name, description, parameters }) =>
    defineTool({
      name,
      description,
      input: parameters as { type: 'object' },
      defer: true,
      execute: () => 'ok',
    }) as Tool,
)

const find = async (query: string, input: readonly Tool[] = tools, options = {}): Promise<string[]> => {
  const { search } = toolSearch(options)
  let names: readonly string[] = []
  await search?.find({ query }, { deferred: input, maxChars: 50_000, load: (loaded) => (names = loaded) })
  return [...names]
}

test.each([
  ['cancel an invoice', 'billing_cancel_invoice'],
  ['send a mail', 'mail_send_message'],
  ['sharing links of files', 'files_create_share_link'],
  ['warehouse_archive_stock_level', 'warehouse_archive_stock_level'],
  ['restart deployments in the cluster', 'cluster_restart_deployment'],
])('%s finds %s', async (query, name) => {
  expect(await find(query)).toContain(name)
})

test('a name matches itself first, and words in camel case', async () => {
  expect((await find('mail_get_draft'))[0]).toBe('mail_get_draft')
  const camel = defineTool({
    name: 'createIssue',
    description: 'X.',
    input: { type: 'object' },
    execute: () => '',
  })
  expect(await find('issue', [camel as Tool])).toEqual(['createIssue'])
})

test('arguments match by their names', async () => {
  const tool = defineTool({
    name: 'go',
    description: 'X.',
    input: { type: 'object', properties: { longitude: { type: 'number' } } },
    execute: () => '',
  })
  expect(await find('longitude', [tool as Tool])).toEqual(['go'])
})

test('the same query finds the same tools in the same order, up to its limit', async () => {
  const word = fc.constantFrom(
    ...'list get invoice mail the of delete issue constructor __proto__ xyzzy ü'.split(' '),
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(word, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 20 }),
      async (words, limit) => {
        const query = words.join(' ')
        const found = await find(query, tools, { limit })
        expect(await find(query, [...tools], { limit })).toEqual(found)
        expect(found.length).toBeLessThanOrEqual(limit)
        const index = await createToolIndex(tools)
        expect((await index(query)).slice(0, limit)).toEqual(found)
      },
    ),
    { numRuns: sampled(15) },
  )
})

test('a search without matches loads nothing, and reports that', async () => {
  let loaded: readonly string[] | undefined
  const text = await toolSearch().search?.find(
    { query: 'xyzzy' },
    { deferred: tools, maxChars: 100, load: (names) => (loaded = names) },
  )
  expect([text, loaded]).toEqual([expect.stringMatching(/^No tool found\./), []])
})

test('the list of tools has all names if they fit, is stable, and never exceeds 10,000 characters', () => {
  const name = fc.stringMatching(/^[a-z_]{1,64}$/)
  fc.assert(
    fc.property(fc.array(fc.record({ name, description: fc.string() }), { maxLength: 900 }), (listed) => {
      const index = writeIndex(listed as Tool[], 'append')
      expect(index.length).toBeLessThanOrEqual(10_000)
      expect(writeIndex([...listed] as Tool[], 'append')).toBe(index)
      const room = listed.reduce((sum, tool) => sum + tool.name.length + 5, 0)
      if (room < 9_000) for (const tool of listed) expect(index).toContain(`- ${tool.name}`)
      else if (room > 10_100) expect(index).toMatch(/and \d+ more\. Find them with tool_search$/)
    }),
    { numRuns: sampled(50) },
  )
})
