import type { GuardrailsConfig } from '../../guards/roster.js'
import { callFact, resultFact } from '../../guards/facts.js'
import type { CallFact, ResultFact } from '../../guards/types.js'
import type { BatchCall, ToolResult, ToolTraits } from './results.js'
import { withheldArguments, withheldName } from './screening.js'

type Tools = Readonly<Record<string, Pick<ToolTraits, 'readOnly' | 'polling'>>>
type Asked = Pick<BatchCall, 'name' | 'arguments' | 'fact' | 'unchecked'>

/** A call as the guards see it. What they say of it shows its arguments, but for those that no shield has seen. */
export function callFactOf(tools: Tools, { name, arguments: text, unchecked }: Asked): CallFact {
  const known = Object.hasOwn(tools, name) ? tools[name] : undefined
  const { polling = false, readOnly = false } = known ?? {}
  const fact = callFact(name, text, { polling, readOnly })
  return unchecked ? { ...fact, name: known ? name : withheldName, shown: withheldArguments } : fact
}

/** The result of a call as the guards that are on see it. */
export function resultFactOf(
  tools: Tools,
  call: Asked,
  result: ToolResult,
  config: GuardrailsConfig,
): ResultFact {
  const { status, content, durationMs, child } = result
  // A call that a log of an older version has left open lacks what this version compares.
  const fact = call.fact !== undefined && 'alike' in call.fact ? call.fact : callFactOf(tools, call)
  const ending = {
    ok: status === 'ok',
    errorKind: errorKindOf(result),
    refused: unexecuted.has(status),
    refusedBy: refusedBy(result),
    content,
    durationMs,
    ...(child && { child }),
  }
  return resultFact(fact, ending, config)
}

const unexecuted: ReadonlySet<string> = new Set(['rejected', 'blocked', 'not_executed', 'interrupted'])

function refusedBy({ status, refusedBy: guard }: ToolResult): ResultFact['refusedBy'] {
  if (status !== 'rejected' && status !== 'blocked') return null
  return guard === 'no_progress' ? 'progress' : 'other'
}

function errorKindOf({ status, errorKind }: ToolResult): ResultFact['errorKind'] {
  switch (status) {
    case 'timeout':
      return 'transient'
    case 'denied':
      return 'policy_denied'
    case 'unknown_tool':
      return 'unknown_tool'
    case 'error':
      return errorKind ?? 'failed'
    case 'invalid_arguments':
      return 'failed'
    default:
      return null
  }
}
