import type { GuardrailsConfig } from '../../guards/roster.js'
import { createCallFact, createResultFact } from '../../guards/facts.js'
import type { CallFact, ResultFact } from '../../guards/types.js'
import type { BatchCall, ResultStatus, ToolResult, ToolTraits } from './batch-calls.js'
import { withheldArguments, withheldName } from './screening.js'

type Tools = Readonly<Record<string, Pick<ToolTraits, 'readOnly' | 'polling'>>>
type ObservedCall = Pick<BatchCall, 'name' | 'arguments' | 'fact' | 'unscreenedArguments'>

/** Converts a call to the form that guards read. Uncleared arguments are omitted. */
export function toCallFact(
  tools: Tools,
  { name, arguments: text, unscreenedArguments }: ObservedCall,
  config: GuardrailsConfig,
): CallFact {
  const known = Object.hasOwn(tools, name) ? tools[name] : undefined
  const { polling = false, readOnly = false } = known ?? {}
  const fact = createCallFact(name, text, { polling, readOnly }, config)
  return unscreenedArguments ? { ...fact, name: known ? name : withheldName, shown: withheldArguments } : fact
}

export function toResultFact(
  tools: Tools,
  call: ObservedCall,
  result: ToolResult,
  config: GuardrailsConfig,
): ResultFact {
  const { status, content, durationMs, child } = result
  // Open calls in logs from early versions lack some of the compared values.
  const fact = call.fact !== undefined && 'key' in call.fact ? call.fact : toCallFact(tools, call, config)
  const ending = {
    ok: status === 'ok',
    errorKind: toGuardErrorKind(result),
    refused: unexecuted.includes(status),
    refusedBy: findRefuser(result),
    content,
    durationMs,
    ...(child && { child }),
  }
  return createResultFact(fact, ending, config)
}

const unexecuted: readonly ResultStatus[] = ['rejected', 'expired', 'blocked', 'not_executed', 'interrupted']

function findRefuser({ status, refusedBy: guard }: ToolResult): ResultFact['refusedBy'] {
  if (status !== 'rejected' && status !== 'blocked') return null
  return guard === 'no_progress' ? 'progress' : 'other'
}

const kindByStatus: Partial<Record<ResultStatus, NonNullable<ResultFact['errorKind']>>> = {
  timeout: 'transient',
  denied: 'policy_denied',
  unknown_tool: 'unknown_tool',
  error: 'failed',
  invalid_arguments: 'failed',
}

function toGuardErrorKind({ status, errorKind }: ToolResult): ResultFact['errorKind'] {
  const own = status === 'denied' || status === 'error' ? errorKind : undefined
  return own ?? kindByStatus[status] ?? null
}
