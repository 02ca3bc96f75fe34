import { defineTool, type Tool } from '../../src/index.js'
import type { ToolExecution } from '../../src/core/tools/tool.js'
import type { Turn } from '../../src/rehearsal/index.js'
import type { JsonObject } from '../../machines/agent/json.js'

type Options = {
  [Key in 'readOnly' | 'polling' | 'idempotent' | 'needsApproval']?: Tool[Key]
} & { timeoutMs?: number }

/** The recorded arguments of the test tools. */
type Input = Record<string, string | number | undefined>

/** A tool that accepts any object and records its arguments. */
export function tool(
  name: string,
  execute: (input: Input, execution: ToolExecution) => unknown = () => 'ok',
  options: Options = {},
): Tool & { inputs: JsonObject[] } {
  const inputs: JsonObject[] = []
  const defined = defineTool({
    ...options,
    name,
    description: `The tool ${name}.`,
    input: { type: 'object' },
    execute: (input, execution) => {
      inputs.push(input)
      return execute(input as Input, execution)
    },
  })
  return { ...(defined as Tool), inputs }
}

export function clientTool(name: string): Tool {
  const input = { type: 'object' as const }
  return defineTool({ name, description: `The tool ${name}.`, input, client: true }) as Tool
}

export function call(name: string, input: object | string = {}, more: Turn = {}): Turn {
  return calls([[name, input]], more)
}

export function calls(
  question: readonly (readonly [name: string, input?: object | string])[],
  more: Turn = {},
): Turn {
  const toolCalls = question.map(([name, input = {}]) => ({
    name,
    arguments: input as string | Record<string, unknown>,
  }))
  return { ...more, toolCalls }
}

export function text(words: string, more: Turn = {}): Turn {
  return { ...more, text: words }
}

export function times<Item>(count: number, item: Item): Item[] {
  return Array.from({ length: count }, () => item)
}
