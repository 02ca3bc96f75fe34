import type { AgentContext } from '../../../machines/agent/context.js'
import type { Json } from '../../../machines/agent/json.js'
import type { BatchCall } from '../../../machines/agent/batch-calls.js'
import { deepFreeze } from '../base/freeze.js'
import type { GuardedCall, GuardedResult, GuardFact } from './guard.js'

/** The calls of the current batch that are not refused yet. */
export function createGuardCallsFact(context: AgentContext): GuardFact {
  const open = context.calls.filter((call) => call.result === undefined)
  return deepFreeze({ type: 'calls', calls: open.map((call) => toGuardedCall(context, call)) })
}

/** How the present batch has ended. */
export function createGuardResultsFact(context: AgentContext): GuardFact {
  const results = context.calls.flatMap((call): GuardedResult[] => {
    if (call.result === undefined) return []
    const { status, content, errorKind = null } = call.result
    return [{ ...toGuardedCall(context, call), status, content, errorKind }]
  })
  return deepFreeze({ type: 'results', results })
}

function toGuardedCall({ tools }: AgentContext, { id, name, arguments: text }: BatchCall): GuardedCall {
  const traits = Object.hasOwn(tools, name) ? tools[name] : undefined
  return {
    id,
    name,
    arguments: readArguments(text),
    argumentsText: text,
    readOnly: traits?.readOnly ?? false,
    polling: traits?.polling ?? false,
  }
}

/** As tools read them: models leave the arguments of a tool without parameters empty, or write null. */
function readArguments(text: string): Json {
  if (text.trim() === '') return {}
  try {
    // Freezing reaches as deep as any reader would: what is nested too deeply for that counts as unreadable.
    return deepFreeze((JSON.parse(text) as Json) ?? {})
  } catch {
    return null
  }
}
