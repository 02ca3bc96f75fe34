import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AssistantMessage } from '../../machines/agent/messages.js'
import type { UnansweredCall } from '../../machines/agent/run-result.js'
import { getCallTitle } from '../web/approval-id.js'
import type { Protocol, UIMessageChunk } from './ui-message-types.js'
import { getAnswerText, parseArguments, toOutputChunk } from './ui-messages.js'

type Kind = 'text' | 'reasoning'
type Chunk = Extract<AgentEvent, { type: 'stream_chunk' }>
type CallDelta = Extract<AgentEvent, { type: 'tool_call_delta' }>

/**
 * Writes the text and the calls of one step while they stream, and corrects them when the final message arrives. `ai` 6 cannot
 * reset a step, so it only receives the final text and complete calls.
 */
export class TextFold {
  readonly #isBuffered: boolean
  readonly #write: (chunk: UIMessageChunk) => void
  #stepId = ''
  #parts = 0
  #open: { kind: Kind; id: string } | null = null
  #shown: Record<Kind, string> = { text: '', reasoning: '' }
  /** Calls with streamed arguments that the final message has not confirmed. */
  readonly #calls = new Set<string>()

  constructor(protocol: Protocol, write: (chunk: UIMessageChunk) => void) {
    this.#isBuffered = protocol === 'v6'
    this.#write = write
  }

  startStep(stepId: string): void {
    this.#stepId = stepId
    this.#parts = 0
    this.#shown = { text: '', reasoning: '' }
  }

  addChunk({ text, reasoning = '', reset, finished }: Chunk): void {
    if (this.#isBuffered) return
    if (reset) this.#resetStep()
    if (reasoning !== '') this.#writeDelta('reasoning', reasoning)
    if (text !== '') this.#writeDelta('text', text)
    if (finished) this.close()
  }

  addCallDelta({ callId, name, delta }: CallDelta): void {
    if (this.#isBuffered) return
    if (!this.#calls.has(callId)) {
      this.close()
      this.#calls.add(callId)
      this.#write({ type: 'tool-input-start', toolCallId: callId, toolName: name })
    }
    if (delta !== '') this.#write({ type: 'tool-input-delta', toolCallId: callId, inputTextDelta: delta })
  }

  /** Removes unconfirmed calls, because the answer ended early. */
  withdrawCalls(): void {
    if (this.#calls.size === 0) return
    const shown = this.#shown
    this.#resetStep()
    for (const kind of ['reasoning', 'text'] as const)
      if (shown[kind] !== '') this.#writeDelta(kind, shown[kind])
  }

  /** Compares the streamed content with the final message. Writes what is missing, and resets what differs. */
  settleMessage(message: AssistantMessage): void {
    const final = { text: getAnswerText(message), reasoning: message.reasoning ?? '' }
    const differs = (kind: Kind): boolean => this.#shown[kind] !== '' && this.#shown[kind] !== final[kind]
    const ids = (message.tool_calls ?? []).map(({ id }) => id)
    const isOther = [...this.#calls].some((id) => !ids.includes(id))
    if (isOther || differs('text') || differs('reasoning')) this.#resetStep()
    this.#calls.clear()
    for (const kind of ['reasoning', 'text'] as const)
      if (this.#shown[kind] === '' && final[kind] !== '') this.#writeDelta(kind, final[kind])
    this.close()
  }

  close(): void {
    if (this.#open) this.#write({ type: `${this.#open.kind}-end`, id: this.#open.id })
    this.#open = null
  }

  #resetStep(): void {
    this.#open = null
    if (this.#calls.size > 0 || this.#shown.text + this.#shown.reasoning !== '')
      this.#write({ type: 'reset-step' })
    this.#calls.clear()
    this.#shown = { text: '', reasoning: '' }
  }

  #writeDelta(kind: Kind, delta: string): void {
    if (this.#open?.kind !== kind) {
      this.close()
      const id = `${this.#stepId}.${this.#parts++}`
      this.#open = { kind, id }
      this.#write({ type: `${kind}-start`, id })
    }
    this.#shown[kind] += delta
    this.#write({ type: `${kind}-delta`, id: (this.#open as { id: string }).id, delta })
  }
}

type ChildEvent = Extract<AgentEvent, { type: 'child_event' }>

/** The state of a sub-agent, which pages show next to the call. */
interface ChildState {
  callId: string
  path: string[]
  text: string
  calls: { callId: string; name: string; status: string }[]
}

/**
 * Writes the activity of sub-agents as one `data-child` per call, sent again on each change; their streamed text as transient
 * chunks; and calls that need approval as calls of the message.
 */
export class ChildFold {
  readonly #write: (chunk: UIMessageChunk) => void
  readonly #children = new Map<string, ChildState>()
  /** Sub-agent calls that are part of the message. */
  readonly #shown = new Set<string>()

  constructor(write: (chunk: UIMessageChunk) => void) {
    this.#write = write
  }

  rememberCall(callId: string): void {
    this.#shown.add(callId)
  }

  showCall(call: UnansweredCall): void {
    const { callId: toolCallId, name: toolName } = call
    this.rememberCall(toolCallId)
    const { input } = parseArguments(call.arguments)
    const title = getCallTitle(call)
    this.#write({ type: 'tool-input-available', toolCallId, toolName, input, dynamic: true, title })
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
          const { id, function: called } = event.call
          calls.push({ callId: id, name: called.name, status: 'called' })
        })
        return
      case 'tool_result': {
        this.#updateChild(callId, path, ({ calls }) => {
          const call = calls.find(({ callId }) => callId === event.callId)
          if (call) call.status = event.status
          // The call started before this page subscribed.
          else calls.push({ callId: event.callId, name: event.name, status: event.status })
        })
        const toolCallId = `${callId}/${event.callId}`
        if (this.#shown.has(toolCallId)) this.#write(toOutputChunk(toolCallId, event))
      }
    }
  }

  #updateChild(callId: string, path: string[], change: (child: ChildState) => void): void {
    const child = this.#children.get(callId) ?? { callId, path, text: '', calls: [] }
    change(child)
    this.#children.set(callId, child)
    this.#write({ type: 'data-child', id: callId, data: structuredClone(child) })
  }
}
