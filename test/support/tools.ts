import { defineTool, type Tool } from '../../src/index.js'
import type { ToolExecution } from '../../src/tools/tool.js'
import type { Turn } from '../../src/rehearsal/index.js'
import type { JsonObject } from '../../machines/agent/json.js'

type Options = Partial<
  Pick<Tool, 'readOnly' | 'polling' | 'idempotent' | 'client' | 'needsApproval' | 'timeoutMs'>
>

/** A tool that takes any object, and remembers what it was called with. */
export function tool(
  name: string,
  execute: (input: JsonObject, execution: ToolExecution) => unknown = () => 'ok',
  options: Options = {},
): Tool & { inputs: JsonObject[] } {
  const inputs: JsonObject[] = []
  const common = { name, description: `The tool ${name}.`, input: { type: 'object' as const } }
  const defined = options.client
    ? defineTool({ ...common, client: true })
    : defineTool({
        ...common,
        ...defaultless(options),
        execute: (input, execution) => {
          inputs.push(input)
          return execute(input, execution)
        },
      })
  return { ...(defined as Tool), inputs }
}

/** A turn that asks for one call. */
export function call(name: string, input: object | string = {}, more: Turn = {}): Turn {
  return calls([[name, input]], more)
}

/** A turn that asks for several calls at once. */
export function calls(
  asked: readonly (readonly [name: string, input?: object | string])[],
  more: Turn = {},
): Turn {
  const toolCalls = asked.map(([name, input = {}]) => ({
    name,
    arguments: input as string | Record<string, unknown>,
  }))
  return { ...more, toolCalls }
}

export function text(words: string, more: Turn = {}): Turn {
  return { ...more, text: words }
}

/** The same turn several times. */
export function times<Item>(count: number, item: Item): Item[] {
  return Array.from({ length: count }, () => item)
}

function defaultless({ client: _, ...options }: Options) {
  const { timeoutMs, needsApproval, ...flags } = options
  return {
    ...flags,
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(needsApproval !== undefined && { needsApproval }),
  }
}
