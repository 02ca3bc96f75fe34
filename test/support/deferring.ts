import * as fc from 'fast-check'
import { defineTool, type Tool, toolSearch } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { manyTools } from './many-tools.js'

export type Loading = 'append' | 'dispatch'

/** Some tools of each server. */
const few = manyTools.filter((_, i) => i % 12 === 0)
const names = few.map(({ name }) => name)

/** The tools of an agent that loads most of them on demand. */
export const deferringTools = (loading: Loading): Tool[] => [
  ...few.map(
    ({ name, description, parameters }, i) =>
      defineTool({
        name,
        description,
        input: parameters as { type: 'object' },
        defer: i > 0,
        execute: () => `${name} is done`,
      }) as Tool,
  ),
  toolSearch({ loading, limit: 2 }),
]

const search = fc
  .constantFrom('invoice', 'send a mail', 'xyzzy', names[3] ?? '')
  .map((query) => ({ name: 'tool_search', arguments: { query } }))

const use = (loading: Loading) =>
  fc
    .record({
      name: fc.constantFrom(...names, 'missing'),
      input: fc.oneof(
        fc.constant({ workspace_id: 'w' }),
        fc.record({ workspace_id: fc.string() }),
        fc.constant({}),
      ),
      isDirect: fc.boolean(),
    })
    .map(({ name, input, isDirect }) =>
      loading === 'append' || isDirect
        ? { name, arguments: input as object }
        : { name: 'call_tool', arguments: { name, arguments: input } },
    )

/** A model that searches, uses loaded and unloaded tools, and answers. */
export const deferringTurns = (loading: Loading): fc.Arbitrary<Turn[]> =>
  fc
    .array(
      fc
        .array(fc.oneof(search, use(loading)), { minLength: 1, maxLength: 3 })
        .map((toolCalls): Turn => ({ toolCalls: toolCalls as NonNullable<Turn['toolCalls']> })),
      { minLength: 1, maxLength: 6 },
    )
    .map((work) => [...work, { text: 'Done.' }])

/** The difference between the prefixes of two consecutive requests, or none. */
export function findPrefixFault(
  earlier: unknown,
  later: unknown,
  [listKey, loading]: [list: string, loading: Loading],
): string | null {
  const [before, after] = [earlier, later].map(readRequest)
  if (!before || !after) return 'there is no request'
  const { [listKey]: list, tools, ...rest } = before
  const { [listKey]: longer, tools: more, ...others } = after
  if (!isPrefix(list, longer)) return `${listKey} does not begin as it did`
  if (JSON.stringify(rest) !== JSON.stringify(others)) return 'what stands beside it is other'
  const isSame =
    loading === 'dispatch' ? JSON.stringify(tools) === JSON.stringify(more) : isPrefix(tools, more)
  return isSame ? null : 'its tools do not begin as they did'
}

/** Marks show the cacheable range and are not part of the cached content. */
function readRequest(sent: unknown): Record<string, unknown> {
  return JSON.parse(
    JSON.stringify(sent, (key, value: unknown) => (key === 'cache_control' ? undefined : value)),
  ) as Record<string, unknown>
}

function isPrefix(list: unknown, longer: unknown): boolean {
  const [all, more] = [list, longer].map((of) => (of as unknown[]).map((one) => JSON.stringify(one)))
  return all?.every((one, i) => more?.[i] === one) ?? false
}
