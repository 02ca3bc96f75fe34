import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AssistantMessage } from '../../machines/agent/messages.js'
import type { Protocol, UIMessageChunk } from './ui-message-chunks.js'

type Kind = 'text' | 'reasoning'
type Chunk = Extract<AgentEvent, { type: 'stream_chunk' }>
type CallDelta = Extract<AgentEvent, { type: 'tool_call_delta' }>

/**
 * Writes the text and the calls of one step: as they stream, then as the final message has them. `ai` 6 cannot reset a step,
 * so it gets the final text and whole calls only.
 */
export class TextFold {
  readonly #isBuffered: boolean
  readonly #write: (chunk: UIMessageChunk) => void
  #stepId = ''
  /** Number of the next part of the step. */
  #parts = 0
  #open: { kind: Kind; id: string } | null = null
  #shown: Record<Kind, string> = { text: '', reasoning: '' }
  /** The calls whose arguments stream, and that the final message has not confirmed. */
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

  /** Takes back the calls that the answer will not have: it ended early. */
  withdrawCalls(): void {
    if (this.#calls.size === 0) return
    const shown = this.#shown
    this.#resetStep()
    for (const kind of ['reasoning', 'text'] as const)
      if (shown[kind] !== '') this.#writeDelta(kind, shown[kind])
  }

  /** Compares what streamed with the final message: writes what is missing, resets what differs. */
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

/** The text of an answer, or of a refusal. */
export function getAnswerText({ content, refusal }: Pick<AssistantMessage, 'content' | 'refusal'>): string {
  return content || (refusal ?? '')
}
