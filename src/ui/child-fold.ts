import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { UnansweredCall } from '../../machines/agent/run-result.js'
import type { UIMessageChunk } from './ui-message-chunks.js'
import { toOutputState, parseArguments, parseOutput } from './ui-parts.js'

type ChildEvent = Extract<AgentEvent, { type: 'child_event' }>

/** The state of a sub-agent, as a page shows it beside the call. */
interface ChildState {
  callId: string
  path: string[]
  /** The text of its last message. */
  text: string
  calls: { callId: string; name: string; status: string }[]
}

/**
 * Writes what sub-agents do: one `data-child` a call, sent again when it changes; their text as it arrives, transient; and
 * the calls that need approval, as calls of the message.
 */
export class ChildFold {
  readonly #write: (chunk: UIMessageChunk) => void
  readonly #children = new Map<string, ChildState>()
  /** Calls of sub-agents that are in the message. */
  readonly #shown = new Set<string>()

  constructor(write: (chunk: UIMessageChunk) => void) {
    this.#write = write
  }

  rememberCall(callId: string): void {
    this.#shown.add(callId)
  }

  showCall({ callId, name, path = [], arguments: text }: UnansweredCall): void {
    this.rememberCall(callId)
    const title = [...path, name].join(' › ')
    const { input } = parseArguments(text)
    this.#write({
      type: 'tool-input-available',
      toolCallId: callId,
      toolName: name,
      input,
      dynamic: true,
      title,
    })
  }

  handleEvent({ callId, path, event }: ChildEvent): void {
    switch (event.type) {
      case 'stream_chunk': {
        const { text, reset } = event
        if (text === '' && !reset) return
        const data = { callId, path, text, ...(reset && { reset }) }
        this.#write({ type: 'data-child-text', data, transient: true })
        return
      }
      case 'assistant_message':
        this.#updateChild(callId, path, (child) => {
          child.text = event.message.content ?? ''
        })
        return
      case 'tool_call':
        this.#updateChild(callId, path, ({ calls }) => {
          const { id, function: asked } = event.call
          calls.push({ callId: id, name: asked.name, status: 'called' })
        })
        return
      case 'tool_result':
        this.#updateChild(callId, path, ({ calls }) => {
          const call = calls.find((one) => one.callId === event.callId)
          if (call) call.status = event.status
          // The call began before this page subscribed.
          else calls.push({ callId: event.callId, name: event.name, status: event.status })
        })
        this.#writeResult(`${callId}/${event.callId}`, event)
    }
  }

  #updateChild(callId: string, path: string[], change: (child: ChildState) => void): void {
    const child = this.#children.get(callId) ?? { callId, path, text: '', calls: [] }
    change(child)
    this.#children.set(callId, child)
    this.#write({ type: 'data-child', id: callId, data: structuredClone(child) })
  }

  #writeResult(toolCallId: string, { status, content }: Extract<AgentEvent, { type: 'tool_result' }>): void {
    if (!this.#shown.has(toolCallId)) return
    const ending = toOutputState(status)
    if (ending === 'available')
      this.#write({ type: 'tool-output-available', toolCallId, output: parseOutput(content) })
    else if (ending === 'denied') this.#write({ type: 'tool-output-denied', toolCallId })
    else this.#write({ type: 'tool-output-error', toolCallId, errorText: content })
  }
}
