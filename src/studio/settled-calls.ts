import type { AgentContext } from '../../machines/agent/context.js'
import { shorten } from '../core/format/format-words.js'
import type { SettledCall } from './protocol.js'
import type { SessionStep } from './session-step.js'

/** The calls that got their result at this record: of the batch at hand, or in the transcript. */
export function listSettledCalls({ entry, before, after }: SessionStep): SettledCall[] {
  const [then, now] = [before.standing.run?.context ?? null, after.standing.run?.context ?? null]
  if (now === null || entry.type !== 'event') return []
  const known = new Set(then?.calls.flatMap(({ id, result }) => (result ? [id] : [])))
  const settled = new Map<string, SettledCall>()
  for (const { id, name, result } of now.calls) {
    if (!result || known.has(id)) continue
    settled.set(id, {
      id,
      name: getCallName(id, now),
      status: result.status,
      isReadOnly: isReadOnly(now, name),
    })
  }
  for (const message of now.messages.slice(then?.messages.length ?? 0)) {
    if (message.role !== 'tool' || known.has(message.tool_call_id)) continue
    const status = message.data?.['status']
    const name = getCallName(message.tool_call_id, then, now)
    settled.set(message.tool_call_id, {
      id: message.tool_call_id,
      name,
      status: typeof status === 'string' ? status : 'ok',
      isReadOnly: isReadOnly(now, name),
    })
  }
  return [...settled.values()]
}

function isReadOnly({ tools }: AgentContext, name: string): boolean {
  return Object.hasOwn(tools, name) && tools[name]?.readOnly === true
}

/** An unknown tool name is uncleared text of the model, so it is not shown. */
export function getCallName(callId: string, ...contexts: (AgentContext | null)[]): string {
  for (const context of contexts) {
    const call = context?.calls.find(({ id }) => id === callId || callId.startsWith(`${id}/`))
    if (!call) continue
    const isKnown = !call.unchecked || Object.hasOwn(context?.tools ?? {}, call.name)
    return isKnown ? shorten(call.name, 60) : 'call'
  }
  return findNameInTranscript(callId, contexts.at(-1) ?? null) ?? 'call'
}

/** A batch that was refused whole was never at hand. */
function findNameInTranscript(callId: string, context: AgentContext | null): string | undefined {
  if (context === null) return undefined
  for (let at = context.messages.length - 1; at >= 0; at -= 1) {
    const message = context.messages[at]
    if (message?.role !== 'assistant') continue
    const name = message.tool_calls?.find(({ id }) => id === callId)?.function.name
    if (name !== undefined) return Object.hasOwn(context.tools, name) ? shorten(name, 60) : 'call'
  }
  return undefined
}
