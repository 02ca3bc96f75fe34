import type { AgentEvent } from '../../machines/agent/announcements.js'
import type { AssistantMessage } from '../../machines/agent/messages.js'
import type { Protocol, UIMessageChunk } from './ui-message-chunks.js'

type Kind = 'text' | 'reasoning'
type Chunk = Extract<AgentEvent, { type: 'stream_chunk' }>

/**
 * Writes the text of one step: as it streams, then as the final message has it. `ai` 6 cannot reset text, so it gets the
 * final text only.
 */
export class TextFold {
  readonly #isBuffered: boolean
  readonly #write: (chunk: UIMessageChunk) => void
  #stepId = ''
  /** Number of the next part of the step. */
  #parts = 0
  #open: { kind: Kind; id: string } | null = null
  #shown: Record<Kind, string> = { text: '', reasoning: '' }

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

  /** Compares the streamed text with the final message: writes what is missing, resets what differs. */
  settleMessage(message: AssistantMessage): void {
    const final = { text: getAnswerText(message), reasoning: message.reasoning ?? '' }
    const differs = (kind: Kind): boolean => this.#shown[kind] !== '' && this.#shown[kind] !== final[kind]
    if (differs('text') || differs('reasoning')) this.#resetStep()
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
    if (this.#shown.text + this.#shown.reasoning !== '') this.#write({ type: 'reset-step' })
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
